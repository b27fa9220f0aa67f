"""Value functions that are trained: a probe regressed on the outcomes of rollouts."""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError, whole_number
from trialogue.models.probe import hidden_states_of_prefixes
from trialogue.oracles import Autoregressive
from trialogue.randomness import generator
from trialogue.samplers.prefix.engine import generate
from trialogue.samplers.prefix.prompts import Prompts, limits
from trialogue.samplers.prefix.values import values
from trialogue.training.probes import ProbeConfig, TrainedProbe, train_probe
from trialogue.verifiers.function import VerifierLike
from trialogue.verifiers.probe import ProbeVerifier


class TrainedValues(NamedTuple):
    """A value function, the probe that it is, and the queries that its examples took."""

    verifier: ProbeVerifier
    probe: TrainedProbe
    queries: int


class RolloutExamples(NamedTuple):
    """Hidden states (n, width) of prefixes, outcomes (n,) of a completion of each, and the queries that took."""

    states: Tensor
    outcomes: Tensor
    queries: int


def rollout_examples(
    oracle: Autoregressive,
    outcome: VerifierLike,
    prompts: Prompts,
    *,
    num_samples: int,
    max_new_tokens: int | None = None,
    layer: int = -1,
    seed: int = 0,
) -> RolloutExamples:
    """Complete each of `prompts` `num_samples` times, and cut each completion to one prefix, of any length alike.

    Given its prefix a completion is one that the oracle would draw: the mean outcome at a hidden state after `layer`
    blocks is what the state tells of V*(y) = E[outcome | y]. Raises `InputError` as `generate` does, and where an
    outcome is neither 0 nor 1.
    """
    num_samples = whole_number("num_samples", num_samples, 1)
    drawn = generate(oracle, prompts, max_new_tokens=max_new_tokens, num_samples=num_samples, seed=seed)
    start, lengths = drawn.prompt_lengths, drawn.lengths
    sequences, limit = drawn.sequences(), limits(oracle, start, max_new_tokens)
    outcomes = torch.empty(len(limit), dtype=torch.float64)
    for most in limit.unique().tolist():
        rows = (limit == most).nonzero()[:, 0]
        ended = [sequences[row] for row in rows.tolist()]
        outcomes[rows] = values(outcome, oracle, ended, prompt_lengths=start[rows], max_length=most)
    wrong = outcomes[(outcomes != 0) & (outcomes != 1)]
    if len(wrong):
        raise InputError("outcome", float(wrong[0]), "give 0 or 1 for a complete sequence")
    share = torch.rand(len(lengths), generator=generator(seed, "cuts of rollouts"))
    cut = start + (share * (lengths - start)).long()
    # A model may have no state before its first token.
    kept = (cut > 0).nonzero()[:, 0]
    if not len(kept):
        raise InputError(
            "prompts", [], "give prompts, or completions of two tokens and more: no prefix has a token"
        )
    states = hidden_states_of_prefixes(
        oracle,
        [sequences[row] for row in kept.tolist()],
        [[length] for length in cut[kept].tolist()],
        (layer,),
    )
    return RolloutExamples(states[:, 0], outcomes[kept], int(drawn.queries.sum()))


def train_values(
    oracle: Autoregressive,
    outcome: VerifierLike,
    prompts: Prompts,
    *,
    num_samples: int,
    max_new_tokens: int | None = None,
    layer: int = -1,
    config: ProbeConfig | None = None,
    seed: int = 0,
) -> TrainedValues:
    """Train a probe of the oracle's hidden states on `rollout_examples`, by log-loss; its probability is the value.

    Judging a prefix takes no pass of its own. Raises `InputError` as `rollout_examples` does, and where all outcomes
    are the same.
    """
    examples = rollout_examples(
        oracle,
        outcome,
        prompts,
        num_samples=num_samples,
        max_new_tokens=max_new_tokens,
        layer=layer,
        seed=seed,
    )
    trained = train_probe(examples.states, examples.outcomes, config)
    probe = trained.probe.eval().requires_grad_(False)
    return TrainedValues(ProbeVerifier(probe, layer), trained, examples.queries)
