"""Ising models: any couplings, cliques and grids, with exact laws where the states can be listed."""
