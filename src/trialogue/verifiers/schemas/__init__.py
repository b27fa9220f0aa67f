"""Formal languages given by JSON Schemas, pydantic models and tool definitions.

A grammar is combined with validation of complete texts.
"""
