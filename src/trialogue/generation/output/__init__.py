"""Samples as records, and the files that they are written to."""
