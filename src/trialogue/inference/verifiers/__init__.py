"""Verifiers: grammars, functions of tokens or text, trained probes, a random control, and their combinations.

Structured distributions are exact verifiers of their own: `trialogue.data.Dyck`.
"""

from trialogue.inference.verifiers.combination import All, Product
from trialogue.inference.verifiers.function import (
    FunctionVerifier,
    TextVerifier,
    Threshold,
    as_verifier,
)
from trialogue.inference.verifiers.grammar import GrammarVerifier
from trialogue.inference.verifiers.probe import ProbeVerifier
from trialogue.inference.verifiers.python_file import python_verifier
from trialogue.inference.verifiers.random import RandomVerifier

__all__ = [
    "All",
    "FunctionVerifier",
    "GrammarVerifier",
    "ProbeVerifier",
    "Product",
    "RandomVerifier",
    "TextVerifier",
    "Threshold",
    "as_verifier",
    "python_verifier",
]
