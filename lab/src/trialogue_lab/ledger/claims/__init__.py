"""Claims, the statistics they are about, and the code that decides whether they hold."""
