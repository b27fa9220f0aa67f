"""Potts chains and finite-window models: domain walls, and the rate at which patterns are lost."""
