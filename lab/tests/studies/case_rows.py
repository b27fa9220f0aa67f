"""Rows of the study test-cases with given numbers."""

from collections.abc import Callable
from typing import Any

from trialogue_lab.studies.test_cases.config import ROLES, Config, Role
from trialogue_lab.studies.test_cases.decodings import EXTENTS, DecodingRule
from trialogue_lab.studies.test_cases.draws import TIMED
from trialogue_lab.studies.test_cases.published import PUBLISHED


def accuracy_records(config: Config, accuracy: Callable[[DecodingRule, int], float]) -> list[dict[str, Any]]:
    """Return the rows of a run with the accuracies `accuracy(decoding, seed)` and the published numbers of queries."""

    def record(role: Role, decoding: DecodingRule, seed: int) -> dict[str, Any]:
        distinct, queries = 800 * accuracy(decoding, seed), _queries(decoding)
        return {
            "table": "draw",
            "model": role,
            "seed": seed,
            "decoding": decoding.name,
            "runs": 1,
            "accuracy_distinct": accuracy(decoding, seed),
            "accuracy": accuracy(decoding, seed),
            "correct": distinct,
            "distinct_correct": distinct,
            "queries": queries,
            "slope": 100 * distinct / queries,
            "cpu_seconds": 1.0,
        }

    return [
        record(role, decoding, seed)
        for role in ROLES
        for extent in EXTENTS
        for decoding in config.decodings(role, extent)
        for seed in config.repetitions(role, extent)
    ]


def _queries(decoding: DecodingRule) -> float:
    """Return the published number of queries, or 38400."""
    published = PUBLISHED.get(decoding)
    return published.queries if published and published.queries == published.queries else 38400


def speed_records(config: Config, seconds: Callable[[DecodingRule], float]) -> list[dict[str, Any]]:
    """Return rows of completions that take 100 queries and `seconds(decoding)` each."""
    records: list[dict[str, Any]] = []
    for role in ROLES:
        for seed in config.repetitions(role, "comparisons"):
            shared = {"table": "speed", "model": role, "seed": seed}
            for decoding in TIMED:
                row = {"decoding": decoding.name, "queries": 100.0, "cpu_seconds": seconds(decoding)}
                records.append(shared | row)
            records.append(shared | {"decoding": "one at a time", "rank_correlation": 0.5})
    return records


def probe_records(config: Config, accuracy: Callable[[str, int, int], float]) -> list[dict[str, Any]]:
    """Return rows of probes with the validation accuracies `accuracy(kind, layer, depth)`."""
    records = []
    for role in ROLES:
        subject = config.subject(role)
        settings = [("token", layer, 1) for layer in subject.layers]
        settings += [("token", subject.layer, depth) for depth in subject.depths if depth > 1]
        records += [
            {
                "table": "probe",
                "model": role,
                "seed": seed,
                "kind": kind,
                "layer": layer,
                "depth": depth,
                "network": subject.model.rpartition("/")[2],
                "chosen": layer == subject.layer,
                "validation_accuracy": accuracy(kind, layer, depth),
            }
            for seed in config.repetitions(role, "all")
            for kind, layer, depth in (*settings, ("block", subject.layer, 1))
        ]
    return records
