"""Distributions that are easy to generate in one token order and hard in another."""
