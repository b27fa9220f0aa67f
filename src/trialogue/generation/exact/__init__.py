"""Exact output distribution and expected cost of a sampler on a small model."""
