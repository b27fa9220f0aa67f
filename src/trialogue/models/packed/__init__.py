"""Linear layers whose weights lie as the processor multiplies them fastest, in 32, 16, 8 or 4 bits."""
