"""Bounds and closed forms for learning from conditional distributions and for sampling with them."""
