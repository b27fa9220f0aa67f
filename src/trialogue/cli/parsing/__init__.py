"""Parsing of command lines."""
