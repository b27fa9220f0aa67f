"""Function `unmask`, which samples from a masked model with an unmasking sampler."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trialogue.arrays import integer_tensor
from trialogue.errors import InputError
from trialogue.indices import first_outside
from trialogue.oracles import Masked, SequenceModel, as_model
from trialogue.oracles.output_checks import require_log_probs
from trialogue.oracles.whole import require_float_tensor
from trialogue.randomness import Streams
from trialogue.samplers.unmasking.checked import ends
from trialogue.samplers.unmasking.contract import Unmasking, map_fields, require_unmasking, select
from trialogue.validation import Count, Natural, check, integer_range, validated

MASKED = -1
"""Token id that marks a masked position of a prompt."""
_CHECKED_SITES = 64
Prompts = Tensor | Sequence[Sequence[int | None]]
"""Sequences of equal length, with `MASKED` or None at masked positions."""


@dataclass(frozen=True)
class Unmasked:
    """Samples of an unmasking sampler, ordered by prompt.

    Args:
        tokens: Token ids (samples, length) int64, with the prompt.
        lengths: Number (samples,) int64 of tokens up to the first end-of-sequence token, or the full length.
        accepted: Whether the sampler accepts each sample (samples,) bool. False only with a verifier (`Checked`).
        passes: Number (samples,) int64 of passes. The model evaluates one row per pass.
        positions: Sum (samples,) int64 of the numbers of masked positions over the passes.
        calls: Number of calls of the model. One call evaluates the unfinished rows of a batch.
    """

    tokens: Tensor
    lengths: Tensor
    accepted: Tensor
    passes: Tensor
    positions: Tensor
    calls: int


@validated
def unmask(
    model: Masked,
    sampler: Unmasking[Any],
    prompts: Prompts | None = None,
    *,
    num_samples: Count = 1,
    length: Count | None = None,
    seed: Natural = 0,
    eos: Natural | None = None,
    batch_size: Count = 64,
) -> Unmasked:
    """Sample sequences from a masked model by revealing masked positions.

    Each sample is determined by the seed and its index, and does not depend on the batch, except for rounding in the
    model. A sample that has finished leaves the batch, and the next one takes its place.

    Args:
        model: The masked model.
        sampler: The sampler, such as `Ordered(Confidence(), Fixed(2))`.
        prompts: Sequences (prompts, N) with -1 or None at masked positions (default: one sequence that is completely
            masked).
        num_samples: Number of samples per prompt (default: 1).
        length: Length N of the sequence if there are no prompts (default: number of sites of the model, or `max_length`
            of the configuration of a `MaskedTransformer`).
        seed: Seed of the random streams (default: 0).
        eos: End-of-sequence token, at which the length of a sample ends (default: none).
        batch_size: Largest number of rows that the model evaluates at once (default: 64).

    Returns:
        The samples with their numbers of passes.

    Raises:
        InputError: If the model is not a masked model, a prompt is invalid, or the model's output is not normalised.

    Example:
        >>> from trialogue import unmask
        >>> from trialogue.data import Ising
        >>> from trialogue.samplers.unmasking import Fixed, LeftToRight, Ordered
        >>> samples = unmask(Ising.clique(6, 3, 0.4, 0.0), Ordered(LeftToRight(), Fixed(2)), num_samples=3)
        >>> samples.passes
        tensor([3, 3, 3])
    """
    require_unmasking(sampler)
    oracle = require_masked(model)
    tokens, masked = prompt_canvas(oracle, prompts, length)
    if eos is not None:
        check("eos", eos, integer_range(0, oracle.vocab_size - 1))
    count = len(tokens) * num_samples
    prompt = torch.arange(count, device=tokens.device) // num_samples
    found = torch.empty(count, tokens.shape[1], dtype=torch.int64, device=tokens.device)
    passes, positions = torch.zeros_like(prompt), torch.zeros_like(prompt)
    accepted = torch.zeros_like(prompt, dtype=torch.bool)
    active, state, started, calls = prompt[:0], sampler.init(tokens[:0], masked[:0]), 0, 0
    streams = Streams(seed, active)
    with torch.no_grad():
        while len(active) or started < count:
            new = torch.arange(started, min(count, started + batch_size - len(active)), device=tokens.device)
            if len(new):
                fresh = sampler.init(tokens[prompt[new]], masked[prompt[new]])
                state = map_fields(lambda *parts: torch.cat(parts), state, fresh)
                active, started = torch.cat((active, new)), started + len(new)
                streams.extend(Streams(seed, new))
            conditionals = evaluate(oracle, state.tokens, state.masked)
            if not calls:
                first = conditionals[state.masked.nonzero()[:_CHECKED_SITES].unbind(1)]
                require_log_probs("log_probs", first, (len(first), oracle.vocab_size))
            calls += 1
            passes[active] += 1
            positions[active] += state.masked.sum(1)
            state = sampler.step(state, conditionals, streams.choose)
            done = sampler.finished(state)
            ended = done.nonzero()[:, 0]
            found[active[ended]] = state.tokens[ended]
            accepted[active[ended]] = sampler.accepted(select(state, ended))
            going = (~done).nonzero()[:, 0]
            active, state = active[going], select(state, going)
            streams.select(going)
    return Unmasked(found, ends(found, eos), accepted, passes, positions, calls)


def require_masked(model: object) -> Masked:
    """Return a model as a `Masked` model, or raise `InputError` if it has no conditionals of masked positions."""
    oracle = as_model(model)
    if not isinstance(oracle, Masked):
        hint = "use a masked model, such as data.Ising or load_pretrained_masked"
        raise InputError("model", type(model).__name__, hint)
    return oracle


def evaluate(model: Masked, tokens: Tensor, masked: Tensor) -> Tensor:
    """Return the log-probabilities (rows, length, vocab) of the masked positions of a canvas.

    Networks may treat some token ids as fixed, so masked positions hold the id of the mask token if there is one.

    Args:
        model: The model.
        tokens: Token ids (rows, length) int64.
        masked: Masked positions (rows, length) bool.
    """
    inputs = tokens.masked_fill(masked, int(getattr(model, "mask", 0)))
    shape = (*tokens.shape, int(model.vocab_size))
    return require_float_tensor("log_probs", model.masked_log_probs(inputs, masked), shape)


def prompt_canvas(model: SequenceModel, prompts: Prompts | None, length: int | None) -> tuple[Tensor, Tensor]:
    """Convert prompts to tokens and masked positions, after a check against the model.

    Args:
        model: The model.
        prompts: Sequences (prompts, N) with -1 or None at masked positions, or None.
        length: Length N if there are no prompts.

    Returns:
        Tokens (prompts, N) int64 on the device of the model, and masked positions (prompts, N) bool.

    Raises:
        InputError: If the length does not suit the model, a token is outside of the vocabulary, or nothing is masked.
    """
    hint = f"give token ids of shape (prompts, {model.sites or 'N'}), with -1 or None at masked positions"
    if prompts is None:
        sites = length or model.sites or model.default_length
        if sites is None:
            raise InputError(
                "length", None, f"give a number, because {type(model).__name__} does not define it"
            )
        prompts = torch.full((1, sites), MASKED)
    elif length is not None:
        raise InputError("length", length, "leave it out, because the prompts define it")
    elif not isinstance(prompts, Tensor):
        prompts = [[MASKED if token is None else token for token in prompt] for prompt in prompts]
    tokens = integer_tensor("prompts", prompts, hint).to(model.device or "cpu")
    if tokens.ndim != 2 or not tokens.numel() or model.sites not in (None, tokens.shape[1]):
        raise InputError("prompts" if length is None else "length", tuple(tokens.shape), hint)
    masked = (tokens == MASKED) | (tokens == getattr(model, "mask", MASKED))
    if not bool(masked.any(1).all()):
        raise InputError(
            "prompts", tokens[~masked.any(1)][0].tolist(), "mask at least one position (-1 or None)"
        )
    tokens = tokens.masked_fill(masked, 0)
    outside = first_outside(tokens, int(model.vocab_size))
    if outside is not None:
        raise InputError(
            "prompts", outside, f"use token ids below vocab_size={model.vocab_size}, or -1 for a mask"
        )
    return tokens, masked
