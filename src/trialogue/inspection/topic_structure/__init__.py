"""Measurement of topic structure: whether a model treats words of the same topic as similar.

Similarity is measured by embeddings and by attention between words.
"""
