"""What masked conditionals cost to learn and what their chains cost to run: pseudolikelihood, mixing, tensorization."""
