"""Linear layers with weights of 32, 16, 8 or 4 bits in memory layouts that are fast on CPUs."""
