"""Output records of samples, and the files to which they are written."""
