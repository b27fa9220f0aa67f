"""The contract of walks in exact laws: what they say of themselves, and what they draw, without sampling error."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import torch

from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.samplers.exact import Law, exact_law
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.sampler import Judges, Uses, Walk
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


def small_trees(walk: Walk[Any]) -> Sequence[RandomTree]:
    """Trees on which the exact law of `walk` is found fast: the more rows a sample moves, the smaller they are."""
    most = _SMALL if walk.rows_per_sample == 1 else _SMALL // 2
    return [tree for tree in VIABLE if len(tree.law()) <= most]


def _law(walk: Walk[Any], tree: RandomTree, rule: Rule | None) -> Law:
    try:
        return exact_law(walk, tree.table(), rule)
    except InputError as error:
        fail(walk, f"on {tree} it cannot run: {error}")


def check_what_it_declares(walk: Walk[Any]) -> None:
    """It is a walk, and what it says of itself can be true."""
    require(isinstance(walk, Walk), walk, "a walk is an instance of a subclass of Walk")
    require(walk.uses in get_args(Uses), walk, f"uses={walk.uses!r} is none of {get_args(Uses)}")
    require(walk.judges in get_args(Judges), walk, f"judges={walk.judges!r} is none of {get_args(Judges)}")
    require(
        isinstance(walk.rows_per_sample, int) and walk.rows_per_sample >= 1,
        walk,
        f"rows_per_sample={walk.rows_per_sample!r} is no whole number of at least 1",
    )
    require(isinstance(walk.goes_back, bool), walk, f"goes_back={walk.goes_back!r} is neither True nor False")
    batch, rows = Batch(TIED.table(), 2 * walk.rows_per_sample, 3), 2 * walk.rows_per_sample
    zeros = torch.zeros(rows, dtype=torch.int64)
    batch.add(torch.zeros(rows, 3, dtype=torch.int64), zeros, zeros, zeros + 3)
    state = walk.init(batch)
    require(isinstance(state, tuple) and hasattr(state, "_fields"), walk, "its state is no NamedTuple")
    for name, field in state._asdict().items():
        require(len(field) == rows, walk, f"{name} of its state has {len(field)} entries for {rows} rows")
    weighs = "log_weight" in state._fields
    require(
        weighs == walk.weighted,
        walk,
        f"weighted={walk.weighted}, but its state has {'a' if weighs else 'no'} field log_weight",
    )


def check_what_it_uses(walk: Walk[Any]) -> None:
    """Its law depends on no more of the verifier than it says that it uses."""
    tree = VIABLE[0]
    pairs: dict[str, list[tuple[Rule, Rule | None]]] = {
        "nothing": [(tree.value, None)],
        "verdicts": [(ruled(tree), tree.allows)],
        "ranks": [(tree.value, lambda prefix: tree.value(prefix) ** 3)],
    }
    for one, other in pairs.get(walk.uses, []):
        laws = [_law(walk, tree, rule).probabilities for rule in (one, other)]
        require_equal_laws(walk, laws[1], laws[0], f"it uses {walk.uses}, but more than that changes its law")


def check_what_it_judges(walk: Walk[Any]) -> None:
    """A walk that judges outputs alone accepts one although prefixes of it have the value zero."""
    tree = VIABLE[0]
    if walk.judges == "outputs":
        law = _law(walk, tree, lambda prefix: tree.complete(prefix) and tree.allows(prefix))
        accepted = any(law.probabilities.get(x, 0.0) > 0 for x in tree.law() if tree.allows(x))
        require(accepted, walk, "it judges outputs, but draws none whose prefixes have the value zero")


def check_its_law_sums_to_one(walk: Walk[Any], tree: RandomTree) -> None:
    """Its exact law on `tree` is a law of complete sequences, whatever the verifier."""
    for name, rule in (*rules_of(tree), ("a verifier that rejects everything", _never)):
        law, where = _law(walk, tree, rule), f"on {tree} with {name}"
        total = math.fsum(law.probabilities.values()) + law.failed + law.never_halts
        require(abs(total - 1) <= _EXACT, walk, f"{where} its law sums to {total}")
        strange = set(law.probabilities) - set(tree.law())
        require(not strange, walk, f"{where} it returns {strange}, which the oracle cannot give")
        require(set(law.weights) == set(law.probabilities), walk, f"{where} weights are of other sequences")
        endless = law.expected_queries == math.inf and law.never_halts == 0
        require(not endless, walk, f"{where} it always halts, after infinitely many queries")


def check_its_weights(walk: Walk[Any]) -> None:
    """With weights it is properly weighted: E[exp(log_weight) 1(x)] = p(x) for every x that the rule allows."""
    for tree in small_trees(walk) if walk.weighted else ():
        due = {x: p for x, p in tree.law().items() if tree.allows(x)}
        weights = _law(walk, tree, tree.allows).weights
        require_equal_laws(walk, weights, due, f"on {tree} it is not properly weighted")


def check_its_weights_under_truncation(walk: Walk[Any]) -> None:
    """Its weights lead to the law that is cut, or, where it masks first, to p_T on what it can return."""
    for tree in small_trees(walk) if walk.weighted else ():
        for top in ({"top_p": 0.7}, {"top_k": 1}):
            uncut, cut = (truncated(tree.table(), 0.6), truncated(tree.table(), 0.6, **top))
            weights = exact_law(walk, cut, tree.allows).weights
            target = exact_law(Ancestral(), uncut if walk.masks_first else cut).probabilities
            due = {x: p for x, p in target.items() if tree.allows(x)}
            if walk.masks_first:
                due = {x: due.get(x, 0.0) for x in weights}
            require_equal_laws(walk, weights, due, f"on {tree} with {top} it is not properly weighted")


def check_complete_prompts(walk: Walk[Any]) -> None:
    """A prompt that is complete costs nothing and weighs what it would, had its last token been certain."""
    certain = Table(lambda prefix: [0.0, 1.0] if prefix else [1.0, 0.0], 2, max_length=2)
    for value in (0.5, 0.0) if walk.weighted else (0.5,):

        def rule(prefix: Prefix, value: float = value) -> float:
            return value if len(prefix) == 2 else 1.0

        grown, given = (exact_law(walk, certain, rule, prompt=prompt) for prompt in ((0,), (0, 1)))
        require_equal_laws(
            walk,
            {(0, 1): given.weights.get((0, 1), 0.0)},
            {(0, 1): grown.weights.get((0, 1), 0.0)},
            "the weight of a prompt that is complete",
        )
        require(given.expected_queries == 0, walk, "a prompt that is complete costs queries")


def check_same_law(walk: Walk[Any], reference: Walk[Any] | Callable[[RandomTree, Rule], Any]) -> None:
    """It has the law of `reference`, exactly, on small trees with verifiers of every kind.

    A walk has to agree in probabilities, weights, failures and expected queries; a function of a tree and a verifier,
    both in plain Python, returns the probabilities of outputs, or a `trialogue.samplers.exact.Law`.
    """
    for tree in (*small_trees(walk), TIED):
        for name, rule in rules_of(tree):
            law, where = _law(walk, tree, rule), f"on {tree} with {name}"
            if isinstance(reference, Walk):
                due: Any = exact_law(reference, tree.table(), rule)
            else:
                due = reference(tree, rule)
            if not isinstance(due, Law):
                require_equal_laws(walk, law.probabilities, due, where)
                continue
            require_equal_laws(walk, law.probabilities, due.probabilities, where)
            require_equal_laws(walk, law.weights, due.weights, f"{where}, weights")
            for fact in ("failed", "never_halts", "expected_queries"):
                given, expected = vars(law)[fact], vars(due)[fact]
                if not math.isclose(given, expected, rel_tol=1e-9, abs_tol=_EXACT):
                    fail(walk, f"{where}: {fact} is {given:.6g} in place of {expected:.6g}")
