"""Samplers of autoregressive models, which build sequences token by token, and the engine that runs them."""
