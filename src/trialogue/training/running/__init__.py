"""State, progress and interruption of a training run."""
