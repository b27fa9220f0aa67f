"""Quantities of the study: one number per repetition, or per verifier."""

from dataclasses import replace

from pandas import Series

from trialogue.ledger import Quantity, Replication, Rows
from trialogue.studies.test_cases.decodings import TRAINED, DecodingRule

repetitions = Replication("prompt set", "seeds", objects="the model of the run")
"""Names, demonstrations and draws of their own."""
with_verifiers = Replication("prompt set", "seeds", objects="the verifiers that the run trained")
"""The same where repetitions take turns with trained verifiers."""
verifiers = Replication("training", "verifiers")


@repetitions
def drawn(rows: Rows, decoding: str, column: str) -> "Series[float]":
    """A number of the whole of each repetition with a decoding, repetitions that share a verifier side by side."""
    return rows.where("draw", decoding=decoding, whole=True).set_index(["verifier", "seed"])[column]


def measured(decoding: DecodingRule, column: str = "accuracy_distinct") -> Quantity:
    """A number of each repetition with `decoding`; repetitions share what verifier there is."""
    quantity = drawn(decoding.name, column)
    return replace(quantity, replication=with_verifiers) if decoding.judge == "trained" else quantity


def per_query(decoding: DecodingRule) -> Quantity:
    """Distinct correct cases per 100 queries."""
    return measured(decoding, "distinct_correct") * 100 / measured(decoding, "queries")


def gain(first: DecodingRule, second: DecodingRule) -> Quantity:
    """Distinct accuracy of the first decoding less that of the second; a trained verifier is the first's."""
    return measured(first) - measured(second)


@with_verifiers
def gain_of_depth(rows: Rows) -> "Series[float]":
    """Mean distinct accuracy with deeper verifiers less that with one of one layer."""
    second, fourth, eighth = (measured(replace(TRAINED, depth=depth))(rows) for depth in (2, 4, 8))
    return ((second + fourth + eighth) / 3 - measured(TRAINED)(rows)).dropna()


@verifiers
def validation(rows: Rows, /, **values: object) -> "Series[float]":
    """Validation accuracy of the probes whose columns have these values."""
    return rows.where("probe", **values).groupby("verifier").validation_accuracy.mean()
