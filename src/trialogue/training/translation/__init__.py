"""How encoder-decoders learn to translate: batches of alike lengths, what is predicted, and from whose translations."""
