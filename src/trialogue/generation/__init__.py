"""Runs of `trialogue generate`: prompts, settings, verifiers by name, and output that a killed run goes on with."""
