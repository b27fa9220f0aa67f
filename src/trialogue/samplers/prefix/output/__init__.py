"""Generated samples, and explanations of why samples were not accepted."""
