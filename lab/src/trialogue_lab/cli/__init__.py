"""Commands of the laboratory, which extend `trialogue`."""
