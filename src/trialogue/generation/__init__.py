"""Implementation of `trialogue generate`: prompts, settings, verifiers, batches and resumable output files."""
