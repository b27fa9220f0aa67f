"""Pretrained models: download, loading and evaluation."""
