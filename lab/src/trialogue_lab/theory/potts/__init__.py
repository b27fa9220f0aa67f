"""Domain walls, survival of patterns, and the maps between chains and autoregressive models."""
