"""Check of all requirements for samplers."""

from collections.abc import Callable
from typing import Any

from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.testing import distributions, runs
from trialogue.testing.distributions import Rule
from trialogue.testing.trees import RandomTree

SAMPLER_CHECKS: dict[str, Callable[[Sampler[Any]], None]] = {
    "declarations": distributions.check_declarations,
    "use of the verifier": distributions.check_verifier_use,
    "judged sequences": distributions.check_judged_sequences,
    "weights": distributions.check_weights,
    "weights under truncation": distributions.check_weights_under_truncation,
    "complete prompts": distributions.check_complete_prompts,
    "completeness": runs.check_completeness,
    "sample independence": runs.check_sample_independence,
    "sample ids": runs.check_sample_ids,
    "batch independence": runs.check_batch_independence,
    "single evaluation": runs.check_single_evaluation,
    "traces": runs.check_sample_traces,
    "budgets": runs.check_budgets,
    "frequencies": runs.check_frequencies,
}
"""Checks that every sampler must pass, by name."""


def check_sampler(
    sampler: Sampler[Any], distribution: Sampler[Any] | Callable[[RandomTree, Rule], Any] | None = None
) -> None:
    """Check that `sampler` satisfies the requirements for samplers, on small random oracles and verifiers.

    The checks include:

    - The attributes of the sampler are correct.
    - Its exact distribution sums to 1. If it has weights, they are correct.
    - Samples are complete, depend only on their ids, agree with their trace, and respect their budgets.
    - The frequencies of samples agree with the exact distribution.

    If the sampler uses several rows per sample, use two, because the cost grows quickly with their number.

    Args:
        sampler: Sampler to check.
        distribution: Expected distribution: another sampler that has it, or a function of a `RandomTree` and
            a verifier that returns the probabilities of the outputs (default: not checked).

    Raises:
        AssertionError: If a requirement is violated.
    """
    distributions.check_declarations(sampler)
    if distribution is not None:
        distributions.check_same_distribution(sampler, distribution)
    for tree in distributions.small_trees(sampler):
        distributions.check_probabilities_sum_to_one(sampler, tree)
    for check in SAMPLER_CHECKS.values():
        check(sampler)
