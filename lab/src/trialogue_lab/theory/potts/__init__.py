"""Domain walls, survival of patterns, and conversions between chains and autoregressive models."""
