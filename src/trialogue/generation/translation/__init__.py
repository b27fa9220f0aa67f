"""Implementation of `trialogue train-translation` and `trialogue translate`."""
