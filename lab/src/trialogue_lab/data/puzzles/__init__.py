"""Distributions that are hard to generate in one order: primes, products and hidden streams."""
