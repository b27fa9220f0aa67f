"""Samplers as Markov chains on whole sequences: contract, engine, and the chains."""
