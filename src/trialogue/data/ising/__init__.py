"""Ising models: any couplings, cliques and grids, with exact distributions where the states can be listed."""
