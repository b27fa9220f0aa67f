"""Verifiers: plain functions, thresholds, trained probes, a random control.

Structured distributions are exact verifiers of their own: `trialogue.data.Dyck`.
"""

from trialogue.inference.verifiers.function import FunctionVerifier, Threshold
from trialogue.inference.verifiers.probe import ProbeVerifier
from trialogue.inference.verifiers.random import RandomVerifier

__all__ = ["FunctionVerifier", "ProbeVerifier", "RandomVerifier", "Threshold"]
