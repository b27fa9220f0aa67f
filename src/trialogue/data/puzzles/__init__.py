"""Puzzles and bit strings whose distributions of solutions are known exactly."""
