"""Topic models with disjoint topics, and the effect of BERT's masking on their documents."""
