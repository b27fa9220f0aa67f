"""Rows as the study of test cases has them, made up of given numbers."""

from collections.abc import Callable

import pandas as pd

from trialogue.studies.test_cases_decodings import Decoding
from trialogue.studies.test_cases_models import Config
from trialogue.studies.test_cases_published import PUBLISHED


def rows_with(config: Config, accuracy: Callable[[Decoding, int], float]) -> pd.DataFrame:
    """Rows of a run that measured `accuracy(decoding, seed)`, at the published queries."""
    return pd.DataFrame(
        {
            "table": "draw",
            "seed": seed,
            "decoding": decoding.name,
            "whole": True,
            "accuracy_distinct": accuracy(decoding, seed),
            "distinct_correct": 800 * accuracy(decoding, seed),
            "queries": PUBLISHED[decoding].queries,
        }
        for decoding in config.decodings()
        for seed in config.seeds
    )


def probe_rows(config: Config, accuracy: Callable[[str, int, int], float]) -> pd.DataFrame:
    """Rows of the probes of a run whose validation accuracy is `accuracy(kind, layer, depth)`."""
    settings = [("token", layer, 1) for layer in config.layers]
    settings += [("token", config.layer, depth) for depth in config.depths if depth > 1]
    return pd.DataFrame(
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
    )
