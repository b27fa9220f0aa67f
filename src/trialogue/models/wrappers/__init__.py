"""Models that modify the next-token distributions of another model."""
