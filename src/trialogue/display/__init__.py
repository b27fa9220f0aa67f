"""Tables, figures, pages and terminal output that commands share."""
