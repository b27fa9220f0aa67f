"""Presentation of the ledger: terminal output, reports, figures and documentation pages."""
