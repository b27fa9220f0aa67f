"""Measurements used by several studies."""
