"""Real text as sequences of tokens: local files or the hub, a byte-level BPE, packed rows in a memory-mapped file."""
