"""Which interactions a model has learned, and when: its losses on clones that keep them up to an order."""
