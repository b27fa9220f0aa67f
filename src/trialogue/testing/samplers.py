"""One call that holds a sampler to the contract of samplers."""

from collections.abc import Callable
from typing import Any

from trialogue.samplers.prefix.sampler import Sampler
from trialogue.testing import distributions, runs
from trialogue.testing.distributions import Rule
from trialogue.testing.trees import RandomTree

SAMPLER_CHECKS: dict[str, Callable[[Sampler[Any]], None]] = {
    "what it declares": distributions.check_what_it_declares,
    "what it uses": distributions.check_what_it_uses,
    "what it judges": distributions.check_what_it_judges,
    "its weights": distributions.check_its_weights,
    "its weights under truncation": distributions.check_its_weights_under_truncation,
    "complete prompts": distributions.check_complete_prompts,
    "samples are complete": runs.check_samples_are_complete,
    "samples alone": runs.check_samples_alone,
    "samples follow their ids": runs.check_samples_follow_their_ids,
    "the batch does not matter": runs.check_the_batch_does_not_matter,
    "prefixes are judged once": runs.check_prefixes_are_judged_once,
    "its trace": runs.check_its_trace,
    "budgets": runs.check_budgets,
    "frequencies": runs.check_frequencies,
}
"""What is checked of every sampler, by name."""


def check_sampler(
    sampler: Sampler[Any], distribution: Sampler[Any] | Callable[[RandomTree, Rule], Any] | None = None
) -> None:
    """Hold `sampler` to the contract of samplers, on small random oracles and verifiers of every kind.

    It says of itself what is true; its exact distribution sums to one, and is properly weighted where it has weights;
    samples are complete, depend on their ids alone, agree in frequency with the exact distribution and with their
    trace, and stay within their budgets. Beyond that, `distribution` says what its distribution is: another sampler
    that has the same, or a function of a tree and a verifier, both in plain Python, that returns the probabilities of
    outputs. A sampler of groups is best checked with groups of two: exact distributions grow with the rows.

    Raises `AssertionError` that says what is wrong.
    """
    distributions.check_what_it_declares(sampler)
    if distribution is not None:
        distributions.check_same_law(sampler, distribution)
    for tree in distributions.small_trees(sampler):
        distributions.check_its_law_sums_to_one(sampler, tree)
    for check in SAMPLER_CHECKS.values():
        check(sampler)
