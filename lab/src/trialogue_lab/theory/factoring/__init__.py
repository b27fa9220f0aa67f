"""Generators of products as factoring algorithms: reductions, densities of primes, randomized algorithms."""
