"""Code broken on purpose: what the tests must reject."""
