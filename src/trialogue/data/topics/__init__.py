"""Topic models with disjoint topics, and what BERT's masking makes of their documents."""
