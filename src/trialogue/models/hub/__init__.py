"""Pretrained models: downloading, loading and evaluation."""
