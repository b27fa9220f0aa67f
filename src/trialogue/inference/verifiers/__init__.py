"""Verifiers: exact, random, plain functions, trained probes, and thresholds of any of them."""
