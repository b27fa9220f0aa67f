"""Runs: measuring a study part by part, and the finished results on disk."""
