"""Generators of products as factoring algorithms: reductions, prime densities and randomized algorithms."""
