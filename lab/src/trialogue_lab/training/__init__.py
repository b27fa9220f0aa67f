"""Objectives, observers and data sources of training that only studies use."""
