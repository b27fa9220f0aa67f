"""Requirements on every sampler in the registry."""

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from refusals import expect_error
from trialogue.errors import InputError
from trialogue.oracles import Verifier
from trialogue.samplers import SAMPLERS, Sampler, SequentialMonteCarlo, generate
from trialogue.samplers.exact import exact_distribution, sampler_transitions
from trialogue.testing.distributions import check_probabilities_sum_to_one
from trialogue.testing.runs import LONG
from trialogue.testing.samplers import SAMPLER_CHECKS
from trialogue.testing.trees import TREES
from trialogue.verifiers import as_verifier

SETTINGS = {
    "block-best-of-n": {"block_tokens": 2},
    "block-value-guided": {"block_tokens": 2},
    "stationary-value-guided": {"steps": 8},
}
"""Required fields of samplers, and fields that shorten the tests."""


def variants(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the default settings and, one at a time, every other option of the fields."""
    yield name, {}
    for field, kind in get_type_hints(SAMPLERS[name]).items():
        for option in get_args(kind)[1:] if get_origin(kind) is Literal else ():
            yield name, {field: option}
    if name == "value-guided":
        yield name, {"candidates": 2, "momentum": 0.5, "lazy": False}


def build(name: str, **options: Any) -> Sampler:
    """Return the sampler with groups of two rows, so that its exact distribution can be enumerated."""
    sampler = SAMPLERS[name](**SETTINGS.get(name, {}), **options)
    size = [
        field.name for field in fields(sampler) if getattr(sampler, field.name) == sampler.rows_per_sample > 2
    ]
    return replace(sampler, **dict.fromkeys(size, 2))


@pytest.fixture(
    params=[variant for name in SAMPLERS for variant in variants(name)],
    ids=lambda variant: "-".join((variant[0], *map(str, variant[1].values()))),
)
def sampler(request):
    name, options = request.param
    return build(name, **options)


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_option_is_documented(name):
    documented = "\n".join(kind.__doc__ or "" for kind in SAMPLERS[name].__mro__)
    missing = [
        field.name for field in fields(SAMPLERS[name]) if f"\n        {field.name}: " not in documented
    ]
    assert not missing


@pytest.mark.parametrize("check", SAMPLER_CHECKS.values(), ids=SAMPLER_CHECKS)
def test_it_keeps_the_contract(sampler, check):
    check(sampler)


@pytest.mark.parametrize("tree", [tree for tree in TREES if len(tree.distribution()) <= 16], ids=str)
def test_its_distribution_sums_to_one(sampler, tree):
    if tree.vocab > 2 and isinstance(sampler, SequentialMonteCarlo) and sampler.proposal == "rejection":
        sampler = replace(
            sampler, particles=1
        )  # Two rows with several draws per token have too many branches.
    check_probabilities_sum_to_one(sampler, tree)


def drawn(sampler, table, verifier=None):
    return generate(table, sampler=sampler, verifier=verifier)


RUNS = (drawn, exact_distribution, sampler_transitions)


def test_a_missing_verifier_is_reported(sampler):
    if sampler.uses == "nothing":
        assert len(generate(LONG.table(), sampler=sampler).sequences()) == 1
        return
    for call in RUNS:
        expect_error(f"verifier=None: {type(sampler).__name__} needs a verifier", call, sampler, LONG.table())


def test_a_class_instead_of_a_sampler_is_rejected(sampler):
    made = type(sampler)
    for call in RUNS:
        with pytest.raises(InputError, match=f"sampler='{made.__name__}': give an instance: {made.__name__}"):
            call(made, LONG.table(), LONG.value)


class ConstantVerifier:
    """A verifier that returns one constant in one shape."""

    scope, layers = "sequence", ()

    def __init__(self, value, *more):
        self.value, self.more = value, more

    def values(self, decoding, rows):
        return torch.full((len(rows), *self.more), self.value)

    def children(self, decoding, rows):
        return None


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_values_out_of_range_are_rejected(sampler, value):
    if sampler.uses != "nothing":
        with pytest.raises(InputError, match=f"verifier={value}"):
            generate(LONG.table(), sampler=sampler, verifier=ConstantVerifier(value))


def test_values_of_the_wrong_shape_are_rejected(sampler):
    assert isinstance(as_verifier(ConstantVerifier(1.0, 2)), Verifier)
    if sampler.uses != "nothing":
        with pytest.raises(InputError, match=r"verifier=\(.*, 2\)"):
            generate(LONG.table(), sampler=sampler, verifier=ConstantVerifier(1.0, 2))


def test_an_oracle_without_a_possible_token_is_reported(sampler):
    class ImpossibleTable(type(LONG.table())):
        def next_log_probs(self, tokens, lengths):
            return torch.full((len(lengths), 2), -math.inf)

    oracle = ImpossibleTable(lambda prefix: [0.5, 0.5], 2, max_length=3)

    def outcome():
        try:
            return generate(oracle, sampler=sampler, verifier=lambda prefix: True).stopped
        except InputError as error:
            return str(error)

    # Samplers that weight the children see that none is possible. The others fail at the draw.
    assert outcome() == ["failed"] or "probability zero" in outcome()
