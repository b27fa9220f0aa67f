"""Translation by an autoregressive model, or by parallel refinement from predicted lengths."""
