"""Whether words of a topic are alike to a model: in its embeddings, and in how it attends from one to another."""
