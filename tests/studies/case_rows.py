"""Rows as the study of test cases has them, made up of given numbers."""

from collections.abc import Callable
from typing import Any

from trialogue.studies.test_cases.config import Config
from trialogue.studies.test_cases.decodings import DecodingRule
from trialogue.studies.test_cases.published import PUBLISHED


def drawn_records(config: Config, accuracy: Callable[[DecodingRule, int], float]) -> list[dict[str, Any]]:
    """Rows of a run that measured `accuracy(decoding, seed)`, at the published queries."""
    return [
        {
            "table": "draw",
            "verifier": verifier,
            "seed": seed,
            "decoding": decoding.name,
            "runs": 1,
            "whole": True,
            "accuracy_distinct": accuracy(decoding, seed),
            "distinct_correct": 800 * accuracy(decoding, seed),
            "queries": PUBLISHED[decoding].queries,
        }
        for decoding in config.decodings()
        for verifier in range(config.verifiers)
        for seed in config.repetitions(verifier)
    ]


def probe_records(config: Config, accuracy: Callable[[str, int, int], float]) -> list[dict[str, Any]]:
    """Rows of the probes of a run whose validation accuracy is `accuracy(kind, layer, depth)`."""
    settings = [("token", layer, 1) for layer in config.layers]
    settings += [("token", config.layer, depth) for depth in config.depths if depth > 1]
    return [
        {
            "table": "probe",
            "verifier": verifier,
            "kind": kind,
            "layer": layer,
            "depth": depth,
            "model": config.model.rpartition("/")[2],
            "chosen": layer == config.layer,
            "validation_accuracy": accuracy(kind, layer, depth),
        }
        for verifier in range(config.verifiers)
        for kind, layer, depth in (*settings, ("block", config.layer, 1))
    ]
