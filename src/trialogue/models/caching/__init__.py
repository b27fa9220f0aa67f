"""Caches of keys and values, and the contexts that use them."""
