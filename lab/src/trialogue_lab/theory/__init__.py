"""Bounds and closed forms: what is proved about learning from conditionals and sampling with them."""
