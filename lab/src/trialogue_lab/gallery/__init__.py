"""An interactive HTML page with four animated examples ("scenes") of samplers and models."""
