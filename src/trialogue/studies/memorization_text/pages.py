"""Figures and tables of the study."""

FIGURES = ()
TABLES = ()
