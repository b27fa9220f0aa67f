"""Value functions that are trained: a probe regressed on the outcomes of rollouts."""

from typing import NamedTuple

import torch

from trialogue.errors import InputError
from trialogue.models.networks.probe import hidden_states_of_prefixes
from trialogue.oracles import Autoregressive
from trialogue.randomness import generator
from trialogue.samplers.prefix.engine import generate
from trialogue.samplers.prefix.prompts import Prompts, limits
from trialogue.samplers.prefix.values import values
from trialogue.training.probes.grid import ProbeConfig, TrainedProbe, train_probe
from trialogue.validation import Count, validated
from trialogue.verifiers.functions.function import VerifierLike
from trialogue.verifiers.probe import ProbeVerifier


class TrainedValues(NamedTuple):
    """A value function, the probe that it is, and the queries that its examples took."""

    verifier: ProbeVerifier
    probe: TrainedProbe
    queries: int


@validated
def train_values(
    oracle: Autoregressive,
    outcome: VerifierLike,
    prompts: Prompts,
    *,
    num_samples: Count,
    max_new_tokens: int | None = None,
    layer: int = -1,
    config: ProbeConfig | None = None,
    seed: int = 0,
) -> TrainedValues:
    """Train a probe of the oracle's hidden states to predict the outcome of a completion; its probability is a value.

    Each of `prompts` is completed `num_samples` times, and each completion is cut to a prefix of uniform length. Given
    its prefix, a completion is a sample of the oracle, so the mean outcome at a hidden state after `layer` blocks
    estimates V*(y) = E[outcome | y]. Judging a prefix takes no pass of its own.

    Raises:
        InputError: As `generate` does, if an outcome is neither 0 nor 1, or if all outcomes are the same.
    """
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
    trained = train_probe(states[:, 0], outcomes[kept], config)
    verifier = ProbeVerifier(trained.probe.eval().requires_grad_(False), layer)
    return TrainedValues(verifier, trained, int(drawn.queries.sum()))
