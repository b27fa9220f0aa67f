"""Support for the training loop: saved state, progress and interruption."""
