"""Claims and how they are decided: statistics, criteria, intervals, registration, pilots, verdicts."""
