"""Gibbs and independent parallel updates on cliques, and the published bounds on both."""
