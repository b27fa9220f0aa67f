"""What is measured of a model: how long it stays coherent, and how well pseudolikelihood estimates."""
