"""Clones of a text corpus: sequences sampled from factored attention networks that are trained on the corpus.

A network with more layers represents interactions among more tokens.
"""
