"""The contract of samplers in exact distributions: what they say of themselves, and what they draw, without sampling
error.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cached_property
from inspect import isroutine
from typing import Any, get_args

import torch

from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.samplers.exact import ExactDistribution, exact_distribution
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.sampler import Judges, Sampler, Uses
from trialogue.samplers.truncation import truncated
from trialogue.testing.requirements import fail, require, require_equal_laws
from trialogue.testing.trees import VIABLE, Prefix, RandomTree

Rule = Callable[[Prefix], float | bool]

TIED = RandomTree(8, horizon=3, tied=True)
"""A tree whose tokens are equally probable, for what a sampler does about ties"""
_EXACT = 1e-12
_SMALL = 16


def ruled(tree: RandomTree) -> Rule:
    """A verifier that forbids what the tree's rule forbids and values the rest unequally."""
    return lambda prefix: tree.value(prefix) * tree.allows(prefix)


def rules_of(tree: RandomTree) -> Iterator[tuple[str, Rule]]:
    """Verifiers of every kind on a tree, by name."""
    yield "a verifier that is never wrong", tree.allows
    yield "an imperfect verifier", tree.judges
    yield "a positive value function", tree.value
    yield "a value function with zeros", ruled(tree)


def _never(prefix: Prefix) -> bool:
    del prefix
    return False


def small_trees(sampler: Sampler[Any]) -> Sequence[RandomTree]:
    """Trees on which the exact distribution of `sampler` is found fast: the more rows a sample moves, the smaller they
    are.
    """
    most = _SMALL if sampler.rows_per_sample == 1 else _SMALL // 2
    return [tree for tree in VIABLE if len(tree.distribution()) <= most]


def _law(sampler: Sampler[Any], tree: RandomTree, rule: Rule | None) -> ExactDistribution:
    try:
        return exact_distribution(sampler, tree.table(), rule)
    except InputError as error:
        fail(sampler, f"on {tree} it cannot run: {error}")


def check_what_it_declares(sampler: Sampler[Any]) -> None:
    """Check that `sampler` is a sampler, and that its attributes are known and possible."""
    require(isinstance(sampler, Sampler), sampler, "a sampler is an instance of a subclass of Sampler")
    _check_attribute_names(sampler)
    possible = {
        "uses": sampler.uses in get_args(Uses),
        "judges": sampler.judges in get_args(Judges),
        "rows_per_sample": isinstance(sampler.rows_per_sample, int) and sampler.rows_per_sample >= 1,
        "goes_back": isinstance(sampler.goes_back, bool),
    }
    allowed = {
        "uses": get_args(Uses),
        "judges": get_args(Judges),
        "rows_per_sample": "an integer of at least 1",
    }
    for name, is_possible in possible.items():
        told = f"{name}={getattr(sampler, name)!r}: use {allowed.get(name, 'True or False')}"
        require(is_possible, sampler, told)
    batch, rows = Batch(TIED.table(), 2 * sampler.rows_per_sample, 3), 2 * sampler.rows_per_sample
    zeros = torch.zeros(rows, dtype=torch.int64)
    batch.add(torch.zeros(rows, 3, dtype=torch.int64), zeros, zeros, zeros + 3)
    state = sampler.init(batch)
    require(isinstance(state, tuple) and hasattr(state, "_fields"), sampler, "its state is no NamedTuple")
    for name, field in state._asdict().items():
        require(len(field) == rows, sampler, f"{name} of its state has {len(field)} entries for {rows} rows")
    weighs = "log_weight" in state._fields
    require(
        weighs == sampler.weighted,
        sampler,
        f"weighted={sampler.weighted}, but its state has {'a' if weighs else 'no'} field log_weight",
    )


def _check_attribute_names(sampler: Sampler[Any]) -> None:
    """Refuse class attributes and properties that `Sampler` does not have: the engine would ignore them.

    Fields of a dataclass, methods, and names that begin with an underscore are free.
    """
    facts = {name for name, value in vars(Sampler).items() if isinstance(value, property)}
    free = {field.name for field in fields(sampler)} if is_dataclass(sampler) else set[str]()
    for kind in type(sampler).__mro__:
        for name, value in vars(kind).items() if kind not in Sampler.__mro__ else ():
            if (
                name.startswith("_")
                or name in facts | free
                or (isroutine(value) and not isinstance(value, cached_property))
            ):
                continue
            close = get_close_matches(name, facts, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the attributes are {', '.join(sorted(facts))}"
            told = f"Sampler has no attribute {name}: {hint} (begin the name of your own with an underscore)"
            require(False, sampler, told)


def check_what_it_uses(sampler: Sampler[Any]) -> None:
    """Its distribution depends on no more of the verifier than it says that it uses."""
    tree = VIABLE[0]
    pairs: dict[str, list[tuple[Rule, Rule | None]]] = {
        "nothing": [(tree.value, None)],
        "verdicts": [(ruled(tree), tree.allows)],
        "ranks": [(tree.value, lambda prefix: tree.value(prefix) ** 3)],
    }
    for one, other in pairs.get(sampler.uses, []):
        distributions = [_law(sampler, tree, rule).probabilities for rule in (one, other)]
        require_equal_laws(
            sampler,
            distributions[1],
            distributions[0],
            f"it uses {sampler.uses}, but more than that changes its distribution",
        )


def check_what_it_judges(sampler: Sampler[Any]) -> None:
    """A sampler that judges outputs alone accepts one although prefixes of it have the value zero."""
    tree = VIABLE[0]
    if sampler.judges == "outputs":
        distribution = _law(sampler, tree, lambda prefix: tree.complete(prefix) and tree.allows(prefix))
        accepted = any(
            distribution.probabilities.get(x, 0.0) > 0 for x in tree.distribution() if tree.allows(x)
        )
        require(accepted, sampler, "it judges outputs, but draws none whose prefixes have the value zero")


def check_its_law_sums_to_one(sampler: Sampler[Any], tree: RandomTree) -> None:
    """Its exact distribution on `tree` is a distribution of complete sequences, whatever the verifier."""
    for name, rule in (*rules_of(tree), ("a verifier that rejects everything", _never)):
        distribution, where = _law(sampler, tree, rule), f"on {tree} with {name}"
        total = (
            math.fsum(distribution.probabilities.values()) + distribution.failed + distribution.never_halts
        )
        require(abs(total - 1) <= _EXACT, sampler, f"{where} its distribution sums to {total}")
        strange = set(distribution.probabilities) - set(tree.distribution())
        require(not strange, sampler, f"{where} it returns {strange}, which the oracle cannot give")
        require(
            set(distribution.weights) == set(distribution.probabilities),
            sampler,
            f"{where} weights are of other sequences",
        )
        endless = distribution.expected_calls == math.inf and distribution.never_halts == 0
        require(not endless, sampler, f"{where} it always halts, after infinitely many queries")


def check_its_weights(sampler: Sampler[Any]) -> None:
    """With weights it is properly weighted: E[exp(log_weight) 1(x)] = p(x) for every x that the rule allows."""
    for tree in small_trees(sampler) if sampler.weighted else ():
        due = {x: p for x, p in tree.distribution().items() if tree.allows(x)}
        weights = _law(sampler, tree, tree.allows).weights
        require_equal_laws(sampler, weights, due, f"on {tree} it is not properly weighted")


def check_its_weights_under_truncation(sampler: Sampler[Any]) -> None:
    """Its weights lead to the distribution that is cut, or, where it masks first, to p_T on what it can return."""
    for tree in small_trees(sampler) if sampler.weighted else ():
        for top in ({"top_p": 0.7}, {"top_k": 1}):
            uncut, cut = (truncated(tree.table(), 0.6), truncated(tree.table(), 0.6, **top))
            weights = exact_distribution(sampler, cut, tree.allows).weights
            target = exact_distribution(Ancestral(), uncut if sampler.masks_first else cut).probabilities
            due = {x: p for x, p in target.items() if tree.allows(x)}
            if sampler.masks_first:
                due = {x: due.get(x, 0.0) for x in weights}
            require_equal_laws(sampler, weights, due, f"on {tree} with {top} it is not properly weighted")


def check_complete_prompts(sampler: Sampler[Any]) -> None:
    """A prompt that is complete costs nothing and weighs what it would, had its last token been certain."""
    certain = Table(lambda prefix: [0.0, 1.0] if prefix else [1.0, 0.0], 2, max_length=2)
    for value in (0.5, 0.0) if sampler.weighted else (0.5,):

        def rule(prefix: Prefix, value: float = value) -> float:
            return value if len(prefix) == 2 else 1.0

        grown, given = (
            exact_distribution(sampler, certain, rule, prompt=prompt) for prompt in ((0,), (0, 1))
        )
        require_equal_laws(
            sampler,
            {(0, 1): given.weights.get((0, 1), 0.0)},
            {(0, 1): grown.weights.get((0, 1), 0.0)},
            "the weight of a prompt that is complete",
        )
        require(given.expected_calls == 0, sampler, "a prompt that is complete costs queries")


def check_same_law(
    sampler: Sampler[Any], reference: Sampler[Any] | Callable[[RandomTree, Rule], Any]
) -> None:
    """It has the distribution of `reference`, exactly, on small trees with verifiers of every kind.

    A sampler has to agree in probabilities, weights, failures and expected queries; a function of a tree and a
    verifier, both in plain Python, returns the probabilities of outputs, or a `trialogue.samplers.exact.Distribution`.
    """
    for tree in (*small_trees(sampler), TIED):
        for name, rule in rules_of(tree):
            distribution, where = _law(sampler, tree, rule), f"on {tree} with {name}"
            if isinstance(reference, Sampler):
                due: Any = exact_distribution(reference, tree.table(), rule)
            else:
                due = reference(tree, rule)
            if not isinstance(due, ExactDistribution):
                require_equal_laws(sampler, distribution.probabilities, due, where)
                continue
            require_equal_laws(sampler, distribution.probabilities, due.probabilities, where)
            require_equal_laws(sampler, distribution.weights, due.weights, f"{where}, weights")
            for fact in ("failed", "never_halts", "expected_calls"):
                given, expected = vars(distribution)[fact], vars(due)[fact]
                if not math.isclose(given, expected, rel_tol=1e-9, abs_tol=_EXACT):
                    fail(sampler, f"{where}: {fact} is {given:.6g} in place of {expected:.6g}")
