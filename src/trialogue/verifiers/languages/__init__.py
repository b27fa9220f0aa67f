"""Verifiers of formal languages."""
