"""Potts chains: energies of windows, exact partition functions, laws, samples and domain walls."""
