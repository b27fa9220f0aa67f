"""Models learned from masked tokens: accuracy of the estimate, and speed of sampling from it."""
