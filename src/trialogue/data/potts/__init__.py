"""Potts chains: energies of windows, exact partition functions, distributions, samples and domain walls."""
