"""Learning from masked conditionals and sampling with their chains: pseudolikelihood, mixing and tensorization."""
