"""Execution of studies and storage of their results."""
