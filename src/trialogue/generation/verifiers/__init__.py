"""Verifiers that are specified by text, such as "regex:[0-9]+"."""
