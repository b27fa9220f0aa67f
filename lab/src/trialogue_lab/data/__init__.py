"""Distributions that only studies use, three of them registered for `trialogue distribution --distribution`."""
