"""Dyck strings: the exact laws of the thesis, their sampler, error parser and exact verifier."""
