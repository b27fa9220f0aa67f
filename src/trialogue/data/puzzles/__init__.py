"""Puzzles and bit strings with exactly known distributions of solutions."""
