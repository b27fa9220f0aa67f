"""Networks, and their files of weights."""
