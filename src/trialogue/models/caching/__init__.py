"""Key-value caches, and the decoding contexts that use them."""
