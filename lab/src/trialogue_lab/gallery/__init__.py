"""Four scenes to look at, on one page: recorded from the package's own samplers and from the rows of its studies."""
