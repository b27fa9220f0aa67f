"""Base class of samplers, and the types that samplers receive and return."""
