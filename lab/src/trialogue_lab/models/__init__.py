"""Networks that only studies use."""
