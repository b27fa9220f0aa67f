"""Clones of a corpus: sequences sampled from factored networks of increasing depth trained on it."""
