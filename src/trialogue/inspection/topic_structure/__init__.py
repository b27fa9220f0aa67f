"""Topic structure of a model, in the similarity of embeddings and in the attention between words."""
