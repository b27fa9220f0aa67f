"""Samplers as Markov chains on whole sequences: contract, engine, and the chains."""

from trialogue.inference.chains import kernels as kernels
