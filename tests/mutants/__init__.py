"""Faulty implementations that the tests must detect."""
