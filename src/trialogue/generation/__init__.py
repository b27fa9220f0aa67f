"""Implementation of `trialogue generate`: prompts, settings, verifiers, scheduling and resumable output."""
