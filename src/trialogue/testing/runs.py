"""Checks of samplers by running them in the engine."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trialogue.randomness import generator
from trialogue.samplers.exact import exact_distribution
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.engine import generate
from trialogue.samplers.prefix.output.samples import Samples
from trialogue.testing.distributions import verified_values
from trialogue.testing.frequencies import l1_distance, weissman_radius
from trialogue.testing.requirements import require
from trialogue.testing.traces import replay
from trialogue.testing.trees import TREES, VIABLE, Prefix, RandomTree

LONG = RandomTree(61, horizon=6, eos=1)
RAGGED: Sequence[Prefix] = [(), (0,), (0, 0), (0, 0, 0), (), (0, 0), (0, 0, 0, 0)]
SAMPLES = 20_000
RADIUS = weissman_radius(cells=9, samples=SAMPLES)
"""Radius of the frequency check.

A wrong distribution with an L1 distance of more than twice the radius (total variation 0.052) is accepted with
probability at most 1e-9.
"""
_EVENTS = {"max_queries", "max_steps", "failed", ""}
_COMPARED = ("lengths", "prompt_lengths", "accepted", "log_weight", "queries")
_COUNTED = ("queries", "distinct_queries", "verifier_calls")


def _require_same(
    sampler: Sampler[Any], first: Samples, second: Samples, order: Tensor | None, what: str
) -> None:
    """Require that two runs have identical samples. Sample i of the first is sample `order[i]` of the second."""
    order = torch.arange(len(first.lengths)) if order is None else order
    for name in _COMPARED:
        require(torch.equal(vars(first)[name], vars(second)[name][order]), sampler, f"{what} changes {name}")
    sequences, stopped = second.sequences(), second.stopped
    same = first.sequences() == [sequences[place] for place in order.tolist()]
    require(same, sampler, f"{what} changes the samples")
    require(first.stopped == [stopped[place] for place in order.tolist()], sampler, f"{what} changes stopped")


def check_batch_independence(sampler: Sampler[Any]) -> None:
    """Check that the samples of a sampler, and the counted model calls, do not depend on the batch size.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If a batch size changes a result.
    """
    settings: dict[str, Any] = {
        "verifier": verified_values(LONG),
        "num_samples": 2,
        "seed": 3,
        "max_steps": 300,
    }
    whole = generate(LONG.table(), RAGGED, sampler=sampler, **settings)
    for batch_size in (1, 3, 8):
        part = generate(LONG.table(), RAGGED, sampler=sampler, batch_size=batch_size, **settings)
        _require_same(sampler, whole, part, None, f"a batch of {batch_size}")
        # The batch determines which row evaluates a shared prefix first, but not the total number of evaluations.
        for name in ("distinct_queries", "verifier_calls"):
            same = int(vars(whole)[name].sum()) == int(vars(part)[name].sum())
            require(same, sampler, f"a batch of {batch_size} changes {name}")


def check_sample_ids(sampler: Sampler[Any]) -> None:
    """Check that a sample is determined by its id and not by its position in the batch.

    The same prompts and ids are sampled in two orders.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If the order changes a sample.
    """
    prompts = [prompt for prompt in RAGGED for _ in range(5)]
    order = torch.randperm(len(prompts), generator=generator(4, "order of the samples"))
    settings: dict[str, Any] = {
        "verifier": verified_values(LONG),
        "batch_size": 8,
        "seed": 4,
        "max_steps": 300,
    }
    straight = generate(LONG.table(), prompts, sampler=sampler, **settings)
    shuffled = [prompts[place] for place in order.tolist()]
    permuted = generate(LONG.table(), shuffled, sampler=sampler, sample_ids=order.tolist(), **settings)
    _require_same(sampler, straight, permuted, torch.argsort(order), "another order")


def check_sample_independence(sampler: Sampler[Any]) -> None:
    """Check that a sample, its importance weight and its number of model calls do not depend on the other samples.

    Each sample is compared with a run in which it is generated alone.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If a sample changes.
    """
    settings: dict[str, Any] = {"verifier": verified_values(LONG), "seed": 5, "max_steps": 300}
    whole = generate(LONG.table(), RAGGED, sampler=sampler, **settings)
    for place, prompt in enumerate(RAGGED):
        alone = generate(LONG.table(), [prompt], sampler=sampler, sample_ids=[place], **settings)
        same = alone.sequences() == [whole.sequences()[place]]
        require(same, sampler, f"sample {place} changes if it is drawn alone")
        for name in ("queries", "log_weight"):
            same = float(vars(alone)[name][0]) == float(vars(whole)[name][place])
            require(same, sampler, f"{name} of sample {place} changes if it is drawn alone")
    prompts = [(), (0,), (0, 0), (0, 0, 0)]
    whole = generate(LONG.table(), prompts, sampler=sampler, verifier=LONG.value, seed=6)
    for place, prompt in enumerate(prompts):
        alone = generate(
            LONG.table(), [prompt], sampler=sampler, verifier=LONG.value, seed=6, sample_ids=[place]
        )
        for name in _COUNTED:
            same = int(vars(alone)[name][0]) == int(vars(whole)[name][place])
            require(same, sampler, f"{name} of the sample for prompt {prompt} changes if it is drawn alone")


def check_completeness(sampler: Sampler[Any]) -> None:
    """Check that samples are valid completions of their prompts.

    A sample must begin with its prompt, end at the first position at which it is complete, and have the correct
    `log_prob`.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If a sample is not valid.
    """
    run = generate(LONG.table(), RAGGED, sampler=sampler, verifier=LONG.value, num_samples=5)
    prompts = [prompt for prompt in RAGGED for _ in range(5)]
    distributions = {prompt: LONG.distribution(prompt) for prompt in prompts}
    require(
        run.prompt_lengths.tolist() == [len(prompt) for prompt in prompts], sampler, "prompt_lengths differ"
    )
    for prompt, x, log_prob in zip(prompts, run.sequences(), run.log_prob.tolist(), strict=True):
        begins = x[: len(prompt)] == prompt or not sampler.keeps_prompts
        require(begins, sampler, f"{x} does not begin with its prompt {prompt}")
        require(LONG.complete(x), sampler, f"{x} is not complete")
        early = any(LONG.complete(x[:length]) for length in range(len(x)))
        require(not early, sampler, f"{x} continues after the end of the sequence")
        due = math.log(distributions[prompt][x])
        require(
            abs(log_prob - due) <= 1e-12, sampler, f"log_prob of {x} is {log_prob:.6g} instead of {due:.6g}"
        )
    require(set(run.stopped) == {""}, sampler, f"samples were stopped: {set(run.stopped)}")
    require(bool(run.accepted.all()), sampler, "complete samples of positive value were not accepted")


def check_frequencies(sampler: Sampler[Any], reference: Sampler[Any] | None = None) -> None:
    """Check that the frequencies of 20,000 samples agree with an exact output distribution.

    Args:
        sampler: Sampler to check.
        reference: Sampler whose exact distribution is expected (default: `sampler` itself).

    Raises:
        AssertionError: If the L1 distance is too large. A correct sampler fails with probability at most 1e-9.
    """
    tree = VIABLE[0]
    distribution = exact_distribution(
        sampler if reference is None else reference, tree.table(), verified_values(tree)
    ).probabilities
    run = generate(
        tree.table(), sampler=sampler, verifier=verified_values(tree), num_samples=SAMPLES, batch_size=SAMPLES
    )
    distance = l1_distance((x if tree.complete(x) else () for x in run.sequences()), distribution)
    message = (
        f"frequencies of {SAMPLES} samples have an L1 distance of {distance:.4f} from the exact distribution; "
        f"at most {RADIUS:.4f} is allowed"
    )
    require(distance < RADIUS, sampler, message)


def check_sample_traces(sampler: Sampler[Any]) -> None:
    """Check that the recorded trace of a run reproduces the samples.

    If the sampler declares `goes_back=False`, no row of the trace may lose tokens or continue from another row.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If a requirement is violated.
    """
    settings: dict[str, Any] = {"num_samples": 4, "batch_size": 6, "max_steps": 300, "trace": True}
    run = generate(LONG.table(), RAGGED, sampler=sampler, verifier=verified_values(LONG), **settings)
    prompts = [prompt for prompt in RAGGED for _ in range(4)]
    assert run.trace is not None
    same = replay(run.trace, prompts, sampler.rows_per_sample) == run.sequences()
    require(same, sampler, "its trace does not lead to its samples")
    if not sampler.goes_back:
        kept = bool((run.trace.kept == run.trace.length).all() & (run.trace.source == run.trace.member).all())
        require(
            kept,
            sampler,
            "goes_back=False, but in its trace a row loses tokens or continues from another row",
        )


def check_budgets(sampler: Sampler[Any]) -> None:
    """Check that a sampler respects limits on model calls and steps, and that samples stopped by a limit are marked.

    The verifier rejects every sequence, so no sample may be accepted. The default limit is checked too.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If a requirement is violated.
    """

    def never(prefix: Prefix) -> bool:
        del prefix
        return False

    rows = sampler.rows_per_sample
    for budget, most in (("max_queries", 6 + rows), ("max_steps", 7 * rows)):
        settings: dict[str, Any] = {"num_samples": 8, "batch_size": 4, budget: 7}
        run = generate(LONG.table(), sampler=sampler, verifier=never, **settings)
        calls_used = int(run.queries.max())
        require(calls_used <= most, sampler, f"a sample used {calls_used} model calls with {budget}=7")
        require(
            set(run.stopped) <= _EVENTS,
            sampler,
            f"stopped has the unknown values {set(run.stopped) - _EVENTS}",
        )
        require(not bool(run.accepted.any()), sampler, "a sample that the verifier rejects was accepted")
        for stopped, x in zip(run.stopped, run.sequences(), strict=True):
            require(bool(stopped) or LONG.complete(x), sampler, f"{x} was not stopped, but is not complete")
    run = generate(TREES[0].table(), sampler=sampler, verifier=never, max_new_tokens=1)
    require(not bool(run.accepted.any()), sampler, "a sample that the verifier rejects was accepted")
    require(int(run.queries[0]) <= 1000 * rows, sampler, "it exceeds the default budget of steps")


def check_single_evaluation(sampler: Sampler[Any]) -> None:
    """Check that the verifier is called once for each prefix, and that every call is counted.

    Args:
        sampler: Sampler to check.

    Raises:
        AssertionError: If a prefix is evaluated twice, or the count differs from the number of calls.
    """
    judged = []

    def verifier(prefix: Prefix) -> float:
        judged.append(prefix)
        return LONG.value(prefix)

    run = generate(LONG.table(), sampler=sampler, verifier=verifier, num_samples=20, batch_size=8)
    again = len(judged) - len(set(judged))
    require(not again, sampler, f"the verifier evaluated {again} prefixes more than once")
    calls = int(run.verifier_calls.sum())
    require(
        calls == len(judged), sampler, f"{calls} verifier calls were counted, but {len(judged)} were made"
    )
