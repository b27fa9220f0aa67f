"""Samplers as Markov chains on whole sequences: contract, engine, and the chains."""

from trialogue.samplers.chains import kernels as kernels
