"""Models that generate a product before its prime factors, and must therefore factor."""
