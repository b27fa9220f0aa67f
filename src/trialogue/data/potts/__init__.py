"""Potts chains with exact partition functions, distributions, samples and domain walls."""
