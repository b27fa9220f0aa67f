"""Probes (small classifiers of hidden states): training, calibration and files."""
