"""Checks of samplers by exact distributions, which have no sampling error."""

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
from trialogue.samplers.prefix.contract.sampler import Judges, Sampler, Uses
from trialogue.samplers.truncation import truncated
from trialogue.testing.requirements import fail, require, require_equal_distributions
from trialogue.testing.trees import VIABLE, Prefix, RandomTree

Rule = Callable[[Prefix], float | bool]

TIED = RandomTree(8, horizon=3, tied=True)
"""A tree whose tokens are equally probable, which tests how a sampler handles ties."""
_EXACT = 1e-12
_SMALL = 16


def verified_values(tree: RandomTree) -> Rule:
    """Return random positive values for the prefixes of a tree, and 0 for prefixes that its verifier rejects.

    Args:
        tree: Random distribution of short sequences, with a random value for each sequence.

    Returns:
        Function from a prefix to 0 if the prefix is rejected, else to its random positive value.
    """
    return lambda prefix: tree.value(prefix) * tree.allows(prefix)


def named_verifiers(tree: RandomTree) -> Iterator[tuple[str, Rule]]:
    """Yield four kinds of verifiers with their names: exact, imperfect, with positive values, and with some zeros.

    Args:
        tree: Random distribution of short sequences, which defines the verdicts and values.

    Yields:
        Description of the verifier, and the verifier as a function of a prefix.
    """
    yield "an exact verifier", tree.allows
    yield "an imperfect verifier", tree.judges
    yield "a positive value function", tree.value
    yield "a value function with zeros", verified_values(tree)


def _never(prefix: Prefix) -> bool:
    del prefix
    return False


def small_trees(sampler: Sampler[Any]) -> Sequence[RandomTree]:
    """Return random test distributions for which the exact output distribution of a sampler is quick to compute.

    Args:
        sampler: Sampler to be tested. If it uses several rows per sample, fewer distributions are returned.
    """
    most = _SMALL if sampler.rows_per_sample == 1 else _SMALL // 2
    return [tree for tree in VIABLE if len(tree.distribution()) <= most]


def _exact(sampler: Sampler[Any], tree: RandomTree, rule: Rule | None) -> ExactDistribution:
    try:
        return exact_distribution(sampler, tree.table(), rule)
    except InputError as error:
        fail(sampler, f"it cannot run on {tree}: {error}")


def check_declarations(sampler: Sampler[Any]) -> None:
    """Check that a sampler is an instance of `Sampler` with valid attributes and a valid initial state.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If an attribute has an unknown name or an invalid value, or the state is not a NamedTuple with
            one entry per row.
    """
    require(isinstance(sampler, Sampler), sampler, "use an instance of a subclass of Sampler")
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
        message = f"{name}={getattr(sampler, name)!r}: use {allowed.get(name, 'True or False')}"
        require(is_possible, sampler, message)
    batch, rows = Batch(TIED.table(), 2 * sampler.rows_per_sample, 3), 2 * sampler.rows_per_sample
    zeros = torch.zeros(rows, dtype=torch.int64)
    batch.add(torch.zeros(rows, 3, dtype=torch.int64), zeros, zeros, zeros + 3)
    state = sampler.init(batch)
    require(isinstance(state, tuple) and hasattr(state, "_fields"), sampler, "its state is not a NamedTuple")
    for name, field in state._asdict().items():
        require(
            len(field) == rows, sampler, f"field {name} of its state has {len(field)} entries for {rows} rows"
        )
    weighs = "log_weight" in state._fields
    require(
        weighs == sampler.weighted,
        sampler,
        f"weighted={sampler.weighted}, but its state has {'a' if weighs else 'no'} field log_weight",
    )


def _check_attribute_names(sampler: Sampler[Any]) -> None:
    """Reject class attributes and properties that `Sampler` does not define, because the engine would ignore them.

    Dataclass fields, methods, and names that begin with an underscore are allowed.
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
            hint += " (begin the names of your own attributes with an underscore)"
            message = f"Sampler has no attribute {name}: {hint}"
            require(False, sampler, message)


def check_verifier_use(sampler: Sampler[Any]) -> None:
    """Check that a sampler uses only the property of the verifier that its attribute `uses` declares.

    For example, a sampler with uses="verdicts" must have the same exact output distribution for two verifiers
    that accept the same sequences with different values.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If the distributions differ.
    """
    tree = VIABLE[0]
    pairs: dict[str, list[tuple[Rule, Rule | None]]] = {
        "nothing": [(tree.value, None)],
        "verdicts": [(verified_values(tree), tree.allows)],
        "ranks": [(tree.value, lambda prefix: tree.value(prefix) ** 3)],
    }
    for one, other in pairs.get(sampler.uses, []):
        distributions = [_exact(sampler, tree, rule).probabilities for rule in (one, other)]
        require_equal_distributions(
            sampler,
            distributions[1],
            distributions[0],
            f"uses={sampler.uses!r}, but another property of the verifier changes its distribution",
        )


def check_judged_sequences(sampler: Sampler[Any]) -> None:
    """Check that a sampler which declares judges="outputs" also works if the verifier rejects all incomplete prefixes.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If the sampler returns no accepted sequence.
    """
    tree = VIABLE[0]
    if sampler.judges == "outputs":
        distribution = _exact(sampler, tree, lambda prefix: tree.complete(prefix) and tree.allows(prefix))
        accepted = any(
            distribution.probabilities.get(x, 0.0) > 0 for x in tree.distribution() if tree.allows(x)
        )
        require(
            accepted, sampler, "judges='outputs', but it returns no output whose prefixes have the value 0"
        )


def check_probabilities_sum_to_one(sampler: Sampler[Any], tree: RandomTree) -> None:
    """Check that the exact output distribution of a sampler is a probability distribution on complete sequences.

    The distribution is computed for verifiers of several kinds. The probabilities of failing and of never halting are
    included in the sum.

    Args:
        sampler: Sampler to check.
        tree: Random distribution of short sequences, which the sampler samples from.

    Raises:
        AssertionError: If the sum differs from 1, an output is impossible, or the expected number of model calls is
            infinite although the sampler always halts.
    """
    for name, rule in (*named_verifiers(tree), ("a verifier that rejects everything", _never)):
        distribution, where = _exact(sampler, tree, rule), f"on {tree} with {name}"
        total = (
            math.fsum(distribution.probabilities.values()) + distribution.failed + distribution.never_halts
        )
        require(abs(total - 1) <= _EXACT, sampler, f"{where} its distribution sums to {total}")
        strange = set(distribution.probabilities) - set(tree.distribution())
        require(
            not strange, sampler, f"{where} it returns {strange}, which have probability 0 under the oracle"
        )
        require(
            set(distribution.weights) == set(distribution.probabilities),
            sampler,
            f"{where} weights and probabilities have different sequences",
        )
        endless = distribution.expected_calls == math.inf and distribution.never_halts == 0
        require(
            not endless,
            sampler,
            f"{where} it always halts, but the expected number of model calls is infinite",
        )


def check_weights(sampler: Sampler[Any]) -> None:
    """Check that the importance weights of a sampler are correct.

    For every accepted sequence x, the mean of exp(log_weight), counted as 0 for other outputs, must be the
    model's probability p(x). If `weights_estimate_mass` is False, it may differ by a common factor. Samplers
    without weights are not tested.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If the weights are wrong for a sequence.
    """
    for tree in small_trees(sampler) if sampler.weighted else ():
        due = {x: p for x, p in tree.distribution().items() if tree.allows(x)}
        weights = _rescale(sampler, _exact(sampler, tree, tree.allows).weights, due)
        require_equal_distributions(sampler, weights, due, f"on {tree} it is not properly weighted")


def check_weights_under_truncation(sampler: Sampler[Any]) -> None:
    """Check that the importance weights of a sampler are correct if the model is truncated by top-k or top-p.

    The condition is that of `check_weights`, with the truncated distribution for p. For samplers that exclude
    rejected tokens before truncation, p is the distribution at the same temperature without truncation.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If the weights are wrong for a sequence.
    """
    for tree in small_trees(sampler) if sampler.weighted else ():
        for top in ({"top_p": 0.7}, {"top_k": 1}):
            uncut, cut = (truncated(tree.table(), 0.6), truncated(tree.table(), 0.6, **top))
            weights = exact_distribution(sampler, cut, tree.allows).weights
            target = exact_distribution(Ancestral(), uncut if sampler.masks_first else cut).probabilities
            due = {x: p for x, p in target.items() if tree.allows(x)}
            if sampler.masks_first:
                due = {x: due.get(x, 0.0) for x in weights}
            weights = _rescale(sampler, weights, due)
            require_equal_distributions(
                sampler, weights, due, f"on {tree} with {top} it is not properly weighted"
            )


def _rescale(
    sampler: Sampler[Any], weights: dict[Prefix, float], due: dict[Prefix, float]
) -> dict[Prefix, float]:
    """Return `weights`, rescaled to the sum of `due` if the weights of the sampler have an unknown common factor."""
    total = math.fsum(weights.values())
    if sampler.weights_estimate_mass or not total:
        return weights
    return {x: weight * math.fsum(due.values()) / total for x, weight in weights.items()}


def check_complete_prompts(sampler: Sampler[Any]) -> None:
    """Check that a sampler returns complete prompts without calling the model, and with the correct weight.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If the model is called, or the weight differs from that of a shorter prompt after
            which the model generates the last token with probability 1.
    """
    certain = Table(lambda prefix: [0.0, 1.0] if prefix else [1.0, 0.0], 2, max_length=2)
    for value in (0.5, 0.0) if sampler.weighted else (0.5,):

        def rule(prefix: Prefix, value: float = value) -> float:
            return value if len(prefix) == 2 else 1.0

        grown, given = (
            exact_distribution(sampler, certain, rule, prompt=prompt) for prompt in ((0,), (0, 1))
        )
        require_equal_distributions(
            sampler,
            {(0, 1): given.weights.get((0, 1), 0.0)},
            {(0, 1): grown.weights.get((0, 1), 0.0)},
            "the weight of a complete prompt",
        )
        require(given.expected_calls == 0, sampler, "a complete prompt needs model calls")


def check_same_distribution(
    sampler: Sampler[Any], reference: Sampler[Any] | Callable[[RandomTree, Rule], Any]
) -> None:
    """Check that the exact output distribution of a sampler equals an expected distribution.

    The distributions are compared on small random models, with verifiers of several kinds.

    Args:
        sampler: Sampler to check.
        reference: Sampler with the expected distribution, or a function of a tree and a verifier that returns
            the expected probabilities of the outputs or an `ExactDistribution`. For an `ExactDistribution`,
            weights, failures and expected numbers of model calls are compared too.

    Raises:
        AssertionError: If the distributions differ.
    """
    for tree in (*small_trees(sampler), TIED):
        for name, rule in named_verifiers(tree):
            distribution, where = _exact(sampler, tree, rule), f"on {tree} with {name}"
            if isinstance(reference, Sampler):
                due: Any = exact_distribution(reference, tree.table(), rule)
            else:
                due = reference(tree, rule)
            if not isinstance(due, ExactDistribution):
                require_equal_distributions(sampler, distribution.probabilities, due, where)
                continue
            require_equal_distributions(sampler, distribution.probabilities, due.probabilities, where)
            require_equal_distributions(sampler, distribution.weights, due.weights, f"{where}, weights")
            for fact in ("failed", "never_halts", "expected_calls"):
                given, expected = vars(distribution)[fact], vars(due)[fact]
                if not math.isclose(given, expected, rel_tol=1e-9, abs_tol=_EXACT):
                    fail(sampler, f"{where}: {fact} is {given:.6g} instead of {expected:.6g}")
