"""Pages: tables, figures, terminal, report, and texts whose numbers come from rows."""
