"""JSON schemas, pydantic models and tools as languages: a grammar for what it can enforce, validation for the rest."""
