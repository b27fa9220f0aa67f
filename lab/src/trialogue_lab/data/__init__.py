"""Distributions used by studies; three of them are registered for `trialogue distribution --distribution`."""
