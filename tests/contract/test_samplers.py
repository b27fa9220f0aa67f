"""Requirements on every sampler in the registry, and faulty samplers that they reject."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from mutants import judges, streams
from mutants import samplers as mutants
from refusals import expect_error, expect_failure
from trialogue.errors import InputError
from trialogue.oracles import Verifier
from trialogue.samplers import (
    SAMPLERS,
    Ancestral,
    Backtracking,
    BestOfN,
    Sampler,
    SequentialMonteCarlo,
    TokenwiseRejection,
    generate,
)
from trialogue.samplers.exact import exact_distribution, sampler_transitions, total_variation
from trialogue.samplers.prefix.engine import groups, prompt_verifiers
from trialogue.samplers.prefix.engine.recorder import TraceRecorder
from trialogue.testing import check_sampler, runs
from trialogue.testing.distributions import (
    check_declarations,
    check_probabilities_sum_to_one,
    check_weights,
    check_weights_under_truncation,
    verified_values,
)
from trialogue.testing.runs import LONG
from trialogue.testing.samplers import SAMPLER_CHECKS
from trialogue.testing.trees import TREES, VIABLE
from trialogue.verifiers import as_verifier

SETTINGS = {
    "block-best-of-n": {"block_tokens": 2},
    "block-value-guided": {"block_tokens": 2},
    "power-metropolis": {"num_steps": 2},
    "stationary-value-guided": {"steps": 8},  # with fewer steps, most walks are repeated
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


def test_its_distribution_sums_to_one(sampler):
    """Other trees are compared with rational arithmetic in `tests/samplers/test_exact_distributions.py`."""
    if isinstance(sampler, SequentialMonteCarlo) and sampler.proposal == "rejection":
        # Two rows with several draws per token have too many branches.
        sampler = replace(sampler, particles=1)
    check_probabilities_sum_to_one(sampler, TREES[5])


def drawn(sampler, table, verifier=None):
    return generate(table, sampler=sampler, verifier=verifier)


RUNS = (drawn, exact_distribution, sampler_transitions)


def test_a_missing_verifier_is_reported(sampler):
    if not sampler.needs_verifier:
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


def correct_sampler(mutant: Sampler[Any]) -> Sampler[Any]:
    """Return the correct sampler with the same fields as `mutant`."""
    kind = next(kind for kind in type(mutant).__mro__ if kind.__module__.startswith("trialogue."))
    return kind(**{field.name: getattr(mutant, field.name) for field in fields(mutant)})


@pytest.mark.parametrize("mutant", [mutants.CredulousRejection(), mutants.BlindChildrenGuided()], ids=repr)
def test_frequencies_reject_faulty_samplers(mutant):
    tree, sampler = VIABLE[0], correct_sampler(mutant)
    distributions = [
        exact_distribution(one, tree.table(), verified_values(tree)).probabilities
        for one in (mutant, sampler)
    ]
    assert total_variation(*distributions) > runs.RADIUS  # the rejection does not depend on chance
    expect_failure("frequencies of 20000 samples", runs.check_frequencies, mutant, sampler)


@pytest.mark.parametrize("broken", [streams.EqualStreams, streams.StandingStreams])
def test_frequencies_reject_faulty_streams(monkeypatch, broken):
    monkeypatch.setattr(groups, "Streams", broken)
    expect_failure("frequencies of 20000 samples", runs.check_frequencies, Ancestral())


@pytest.mark.parametrize(
    "broken", [streams.PlaceKeyedStreams, streams.MisplacedStreams, streams.SharedStreams]
)
def test_batch_independence_rejects_faulty_streams(monkeypatch, broken):
    monkeypatch.setattr(groups, "Streams", broken)
    expect_failure("a batch of", runs.check_batch_independence, Backtracking())


def test_a_cached_verifier_with_repeated_calls_is_rejected(monkeypatch):
    monkeypatch.setattr(prompt_verifiers, "CachedVerifier", judges.ForgetfulJudge)
    expect_failure("more than once", runs.check_single_evaluation, TokenwiseRejection())


def test_a_trace_without_a_move_is_rejected(monkeypatch):
    def gaps(recorder, step, groups, moves):
        rows = torch.arange(len(moves.source))
        kept = moves._replace(token=moves.token.masked_fill(rows == 0, -1))
        original(recorder, step, groups, kept)

    original = TraceRecorder.record
    monkeypatch.setattr(TraceRecorder, "record", gaps)
    expect_failure(r"its trace does not lead|holds . tokens", runs.check_sample_traces, BestOfN(2))


@pytest.mark.parametrize("sampler", [mutants.StraightRejection(), mutants.StraightGuided()], ids=str)
def test_an_undeclared_return_to_a_shorter_prefix_is_rejected(sampler):
    expect_failure("goes_back=False", runs.check_sample_traces, sampler)


@dataclass(frozen=True)
class Extended(Ancestral):
    """A sampler with additional names, all of which are allowed."""

    field: int = 1
    _private = True

    def method(self):
        return self.field


class Misspelt(Extended):
    weigthed = True


class MisspeltProperty(Extended):
    @property
    def fails_reason(self):
        return "never"


class WithTemperature(Extended):
    temperature = 1.0


class WithNumber(Extended):
    goes_back = 1


def test_unknown_attributes_of_samplers_are_reported():
    check_declarations(Extended())
    for sampler, message in (
        (Misspelt(), "Sampler has no attribute weigthed: did you mean weighted?"),
        (MisspeltProperty(), "Sampler has no attribute fails_reason: did you mean failure_reason?"),
        (
            WithTemperature(),
            "Sampler has no attribute temperature: the attributes are failure_reason, few_children, goes",
        ),
        (WithNumber(), "goes_back=1: use True or False"),
    ):
        expect_failure(re.escape(message), check_sampler, sampler)


@pytest.mark.parametrize("mutant", mutants.WRONG_DISTRIBUTIONS, ids=repr)
def test_the_check_rejects_faulty_samplers_by_their_distribution(mutant):
    message = r" instead of | is not properly weighted|changes its distribution|cannot run"
    expect_failure(message, check_sampler, mutant, correct_sampler(mutant))


@pytest.mark.parametrize("mutant", [mutants.UnweightedMask(), mutants.SumWeightMonteCarlo(2)], ids=str)
def test_wrong_weights_are_rejected_without_a_reference(mutant):
    expect_failure("not properly weighted", check_weights, mutant)


@pytest.mark.parametrize("mask_first", [True, False])
def test_wrong_weights_under_truncation_are_rejected(mask_first):
    mutant = mutants.BoastfulMask(mask_first=mask_first)
    check_weights(mutant)
    expect_failure("not properly weighted", check_weights_under_truncation, mutant)
