"""Gibbs and independent parallel updates on cliques, and their published bounds."""
