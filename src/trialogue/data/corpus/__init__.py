"""Text corpora as sequences of tokens.

A corpus is read from local files or the Hugging Face hub, and tokenized with a byte-level BPE. The tokens are stored in
a memory-mapped file.
"""
