"""Verifiers that call Python functions."""
