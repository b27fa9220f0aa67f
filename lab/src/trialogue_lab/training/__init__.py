"""Losses, training batches and recorders of weights that only studies use."""
