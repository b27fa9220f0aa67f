"""Displays of the verdicts: terminal output, reports, figures and documentation pages."""
