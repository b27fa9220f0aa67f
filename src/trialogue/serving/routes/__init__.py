"""Routes of the HTTP server."""
