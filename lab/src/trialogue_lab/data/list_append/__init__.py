"""Code-generation task in which a model writes test cases for a function that appends to a list."""
