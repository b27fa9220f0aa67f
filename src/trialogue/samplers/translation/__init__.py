"""Translations: written from left to right by the twin, or refined in parallel from guesses of their length."""
