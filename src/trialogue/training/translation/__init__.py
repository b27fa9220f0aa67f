"""Training of encoder-decoders for translation: batches, losses and distillation."""
