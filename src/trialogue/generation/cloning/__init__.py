"""Clones of a corpus: factored networks of growing depth trained on it, and sequences sampled from them."""
