"""Models that generate a product before its two prime factors, and why they must be able to factor."""
