"""Topic models whose topics share no words, and the effect of BERT's masking on their documents."""
