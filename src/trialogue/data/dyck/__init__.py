"""Dyck strings: the exact distributions of the thesis, their sampler, error parser and exact verifier."""
