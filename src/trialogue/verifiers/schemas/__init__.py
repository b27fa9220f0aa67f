"""Languages from JSON Schemas, pydantic models and tools. A grammar is combined with validation of complete texts."""
