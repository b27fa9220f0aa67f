"""Tables, figures, HTML pages and terminal output of the commands."""
