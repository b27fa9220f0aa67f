"""Published bounds and exact formulas, in code that tests them on small models."""
