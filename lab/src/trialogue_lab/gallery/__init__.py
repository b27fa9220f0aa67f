"""An interactive HTML page with five animated examples ("scenes") of samplers and models."""
