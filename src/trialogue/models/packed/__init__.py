"""Linear layers with weights in fast CPU layouts of 32, 16, 8 or 4 bits."""
