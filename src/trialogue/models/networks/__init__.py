"""Network architectures, and the files in which their weights are stored."""
