"""Claims and how they are decided: quantities, criteria, intervals, registration, pilots, verdicts."""
