"""Models that modify the distributions of another model."""
