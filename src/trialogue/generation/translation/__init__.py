"""What `trialogue train-translation` and `trialogue translate` do: a folder of networks, and lines in, lines out."""
