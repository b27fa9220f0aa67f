"""Running studies and storing their results."""
