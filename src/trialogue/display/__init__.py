"""Tables, figures, HTML pages and terminal output shared by the commands."""
