"""Rows as the study of test cases has them, made up of given numbers."""

from collections.abc import Callable
from typing import Any

from trialogue.studies.test_cases.config import ALONE, BATCH, Config
from trialogue.studies.test_cases.decodings import TRAINED, DecodingRule
from trialogue.studies.test_cases.measure import TIMED
from trialogue.studies.test_cases.published import PUBLISHED, Published


def published(decoding: DecodingRule) -> Published:
    """What the thesis prints, and numbers of a middling kind for the layers of other models."""
    return PUBLISHED.get(decoding, Published(0.7, 39000.0))


def drawn_records(
    config: Config, accuracy: Callable[[DecodingRule, int], float], beside: bool = False
) -> list[dict[str, Any]]:
    """Rows of a run that measured `accuracy(decoding, seed)`, at the published queries, half of all after one run."""
    return [
        {
            "table": "draw",
            "beside": beside,
            "seed": seed,
            "decoding": decoding.name,
            "runs": runs,
            "whole": runs == 2,
            "accuracy": accuracy(decoding, seed),
            "accuracy_distinct": accuracy(decoding, seed),
            "distinct_correct": 400 * runs * accuracy(decoding, seed),
            "queries": published(decoding).queries * runs / 2,
        }
        for seed in config.seeds
        for decoding in config.decodings(seed)
        for runs in (1, 2)
    ]


def probe_records(
    config: Config, accuracy: Callable[[str, int, int], float], beside: bool = False
) -> list[dict[str, Any]]:
    """Rows of the probes of a run whose validation accuracy is `accuracy(kind, layer, depth)`."""
    settings = [("token", layer, 1) for layer in config.layers]
    settings += [("token", config.layer, depth) for depth in config.depths if depth > 1]
    return [
        {
            "table": "probe",
            "beside": beside,
            "seed": seed,
            "kind": kind,
            "layer": layer,
            "depth": depth,
            "model": config.model.rpartition("/")[2],
            "chosen": layer == config.layer,
            "validation_accuracy": accuracy(kind, layer, depth),
        }
        for seed in config.seeds
        for kind, layer, depth in (*settings, ("block", config.layer, 1))
    ]


def timed_records(config: Config, seconds: Callable[[DecodingRule, int], float]) -> list[dict[str, Any]]:
    """Rows of a run in which a query of `decoding` took `seconds(decoding, at_once)`."""
    settings = [(decoding, at_once, 96) for decoding in TIMED for at_once in (ALONE, BATCH)]
    settings += [(decoding, ALONE, tokens) for decoding in TIMED[:2] for tokens in (24, 48)]
    return [
        {
            "table": "time",
            "beside": False,
            "seed": seed,
            "decoding": decoding.name,
            "at_once": at_once,
            "tokens": tokens,
            "queries": at_once * tokens + 16 * (decoding == TRAINED),
            "cpu_seconds": seconds(decoding, at_once) * (at_once * tokens + 16 * (decoding == TRAINED)),
        }
        for seed in config.seeds[: config.timed]
        for decoding, at_once, tokens in settings
    ]
