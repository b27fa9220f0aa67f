"""Training of value functions: probes that predict the outcome of a completion."""

from typing import NamedTuple

import torch

from trialogue.errors import InputError
from trialogue.models.networks.probe import hidden_states_of_prefixes
from trialogue.oracles import Autoregressive
from trialogue.randomness import generator
from trialogue.samplers.prefix.engine import generate
from trialogue.samplers.prefix.prompts import Prompts, maximum_lengths
from trialogue.samplers.prefix.values import values
from trialogue.training.probes.grid import ProbeConfig, TrainedProbe, train_probe
from trialogue.validation import Count, validated
from trialogue.verifiers.functions.function import VerifierLike
from trialogue.verifiers.probe import ProbeVerifier


class TrainedValues(NamedTuple):
    """A trained value function. Result of `train_values`.

    Attributes:
        verifier: The value function.
        probe: The probe that it uses, with training metrics.
        queries: Number of model calls for sampling the rollouts.
    """

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
    """Train a value function: a probe that predicts the outcome of a completion from a hidden state.

    Completions are sampled and cut to prefixes of random length. The probe learns the probability of a
    positive outcome given the prefix, which is the value of the prefix. Evaluating it needs no additional
    forward pass.

    Args:
        oracle: Model that completes the prompts and provides the hidden states.
        outcome: Verifier that returns 0 or 1 for a complete sequence.
        prompts: Prompts to complete.
        num_samples: Completions per prompt.
        max_new_tokens: Maximum number of new tokens per completion.
        layer: Layer whose hidden states the probe reads, -1 for the input of the output head.
        config: Hyperparameters of the probe. The defaults of `ProbeConfig` by default.
        seed: Seed for the completions and the prefix lengths.

    Raises:
        InputError: If `generate` rejects an argument, if an outcome is neither 0 nor 1, or if all outcomes
            are equal.
    """
    drawn = generate(oracle, prompts, max_new_tokens=max_new_tokens, num_samples=num_samples, seed=seed)
    start, lengths = drawn.prompt_lengths, drawn.lengths
    sequences, limit = drawn.sequences(), maximum_lengths(oracle, start, max_new_tokens)
    outcomes = torch.empty(len(limit), dtype=torch.float64)
    for max_length in limit.unique().tolist():
        rows = (limit == max_length).nonzero()[:, 0]
        ended = [sequences[row] for row in rows.tolist()]
        outcomes[rows] = values(outcome, oracle, ended, prompt_lengths=start[rows], max_length=max_length)
    wrong = outcomes[(outcomes != 0) & (outcomes != 1)]
    if len(wrong):
        raise InputError("outcome", float(wrong[0]), "return 0 or 1 for a complete sequence")
    share = torch.rand(len(lengths), generator=generator(seed, "cuts of rollouts"))
    cut = start + (share * (lengths - start)).long()
    # Some models have no hidden state before the first token.
    nonempty = (cut > 0).nonzero()[:, 0]
    if not len(nonempty):
        raise InputError(
            "prompts", [], "all prefixes are empty; use prompts, or completions of at least two tokens"
        )
    states = hidden_states_of_prefixes(
        oracle,
        [sequences[row] for row in nonempty.tolist()],
        [[length] for length in cut[nonempty].tolist()],
        (layer,),
    )
    trained = train_probe(states[:, 0], outcomes[nonempty], config)
    verifier = ProbeVerifier(trained.probe.eval().requires_grad_(False), layer)
    return TrainedValues(verifier, trained, int(drawn.queries.sum()))
