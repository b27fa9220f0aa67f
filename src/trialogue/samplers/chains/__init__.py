"""Markov chains on sequences of fixed length: contract, engine and implementations."""

from trialogue.samplers.chains import kernels as kernels
