"""The interface of samplers."""
