"""One call that holds a walk to the contract of walks."""

from collections.abc import Callable
from typing import Any

from trialogue.samplers.prefix.sampler import Walk
from trialogue.testing import distributions, runs
from trialogue.testing.distributions import Rule
from trialogue.testing.trees import RandomTree

WALK_CHECKS: dict[str, Callable[[Walk[Any]], None]] = {
    "what it declares": laws.check_what_it_declares,
    "what it uses": laws.check_what_it_uses,
    "what it judges": laws.check_what_it_judges,
    "its weights": laws.check_its_weights,
    "its weights under truncation": laws.check_its_weights_under_truncation,
    "complete prompts": laws.check_complete_prompts,
    "samples are complete": runs.check_samples_are_complete,
    "samples alone": runs.check_samples_alone,
    "samples follow their ids": runs.check_samples_follow_their_ids,
    "the batch does not matter": runs.check_the_batch_does_not_matter,
    "prefixes are judged once": runs.check_prefixes_are_judged_once,
    "its trace": runs.check_its_trace,
    "budgets": runs.check_budgets,
    "frequencies": runs.check_frequencies,
}
"""What is checked of every walk, by name."""


def check_walk(walk: Walk[Any], law: Walk[Any] | Callable[[RandomTree, Rule], Any] | None = None) -> None:
    """Hold `walk` to the contract of walks, on small random oracles and verifiers of every kind.

    It says of itself what is true; its exact law sums to one, and is properly weighted where it has weights; samples
    are complete, depend on their ids alone, agree in frequency with the exact law and with their trace, and stay within
    their budgets. Beyond that, `law` says what its law is: another walk that has the same, or a function of a tree and
    a verifier, both in plain Python, that returns the probabilities of outputs. A walk of groups is best checked with
    groups of two: exact laws grow with the rows.

    Raises `AssertionError` that says what is wrong.
    """
    laws.check_what_it_declares(walk)
    if law is not None:
        laws.check_same_law(walk, law)
    for tree in laws.small_trees(walk):
        laws.check_its_law_sums_to_one(walk, tree)
    for check in WALK_CHECKS.values():
        check(walk)
