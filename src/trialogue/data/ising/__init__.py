"""Ising models with arbitrary couplings, cliques and grids."""
