"""Verifiers as commands specify them."""
