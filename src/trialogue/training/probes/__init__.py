"""Training, calibration and files of probes."""
