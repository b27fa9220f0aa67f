"""Many-body distributions: random sequences whose energy couples two, three or four sites at a time."""
