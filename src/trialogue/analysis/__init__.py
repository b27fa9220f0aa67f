"""What is measured of a model: its coherence, the interactions it has learned, how well pseudolikelihood estimates."""
