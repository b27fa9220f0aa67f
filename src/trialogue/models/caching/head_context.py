"""Base class of decoding contexts whose features determine the logits by the output head of a causal model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Context


class HeadedModel(Protocol):
    """Protocol of the output head of a causal model.

    Attributes:
        head: Function that maps hidden states (n, width) to logits (n, vocab).
        plain_head: Whether `head` maps the last hidden state to the logits. Otherwise features contain the logits.
        vocab_size: Number of tokens that have a logit.
        width: Width of the hidden states.
        eos: Token that ends a sequence, if any.
        other_ends: Further tokens that end a sequence, which contexts merge into `eos`.
    """

    head: Any
    plain_head: bool
    vocab_size: int
    width: int
    eos: int | None
    other_ends: tuple[int, ...]


class LimitedModel(Protocol):
    """Protocol of the limits of a causal model.

    Attributes:
        name: Name in messages.
        max_length: Maximum number of positions, or None for no limit.
        window: Sliding-window length that limits the capacity of contexts, or None.
        layers: Number of blocks.
    """

    name: str
    max_length: int | None
    window: int | None
    layers: int


def require_capacity_and_layers(model: LimitedModel, capacity: int, layers: Sequence[int]) -> tuple[int, ...]:
    """Return the layers whose residual streams a context records, which are all `layers` but -1.

    Raises:
        InputError: If `capacity` exceeds the positions or the sliding window of the model, or if a layer is not in
            -1..layers - 1.
    """
    if model.max_length is not None and capacity > model.max_length:
        hint = f"{model.name} has {model.max_length} positions. Shorten prompts or max_new_tokens"
        raise InputError("capacity", capacity, hint)
    if model.window is not None and capacity > model.window:
        hint = (
            f"{model.name} attends within a sliding window of {model.window} tokens, and cannot rewind longer "
            "sequences. Generate fewer tokens, or load the model with recompute=True"
        )
        raise InputError("capacity", capacity, hint)
    for layer in layers:
        if not -1 <= layer < model.layers:
            hint = f"must be -1 (the input of the output head) or in 0..{model.layers - 1}"
            raise InputError("layers", layer, hint)
    return tuple(layer for layer in layers if layer != -1)


class HeadContext(Context):
    """Base class of decoding contexts of causal language models.

    The features of a prefix are a vector of size width * (1 + len(layers)): the last hidden state, followed
    by the residual stream after each of `layers`. If the output head is not a plain matrix product, logits
    precede them.

    Args:
        oracle: Model to evaluate.
        capacity: Maximum number of tokens per row.
        layers: Layers whose residual streams are part of the features, where layer 0 is the embedding.
    """

    first = 1
    passes: int

    def __init__(self, oracle: HeadedModel, capacity: int, layers: tuple[int, ...]) -> None:
        self._headed, self._capacity, self._layers = oracle, capacity, layers
        self._logits = 0 if oracle.plain_head else oracle.vocab_size
        self.passes = 0

    def log_probs(self, features: Tensor) -> Tensor:
        """Return the log-probabilities (n, vocab) of the next token from features (n, features).

        They are float64 for a float64 model, and float32 otherwise.
        """
        return self.log_probs_from_scores(self.scores(features))

    def scores(self, features: Tensor) -> Tensor:
        """Return the logits (n, vocab) of the next token, without merging end-of-sequence tokens."""
        headed = self._headed
        return features[:, : self._logits] if self._logits else headed.head(features[:, : headed.width])

    def log_probs_from_scores(self, scores: Tensor) -> Tensor:
        """Return the log-probabilities (n, vocab) for logits (n, vocab), with all end-of-sequence tokens merged."""
        eos, others = self._headed.eos, self._headed.other_ends
        log_probs = torch.log_softmax(scores, -1, dtype=torch.promote_types(scores.dtype, torch.float32))
        if others and eos is not None:
            log_probs[:, eos] = log_probs[:, [eos, *others]].logsumexp(1)
            log_probs[:, others] = -torch.inf
        return log_probs

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Return the residual stream (n, width) after `layer` blocks.

        Layer -1 is the input of the output head.

        Raises:
            InputError: If the context was opened without this layer.
        """
        width = self._headed.width
        if layer == -1:
            return features[:, self._logits : self._logits + width]
        if layer not in self._layers:
            raise InputError("layer", layer, f"not recorded. Open the context with layers=({layer},)")
        first = self._logits + width * (1 + self._layers.index(layer))
        return features[:, first : first + width]

    def _require_valid_lengths(self, stop: Tensor) -> None:
        if int(stop.min()) < 1:
            hint = (
                "pretrained models need at least one token. Begin the prompt with the BOS token of the model"
            )
            raise InputError("prompts", "(empty)", hint)
        if int(stop.max()) > self._capacity:
            hint = f"open a larger context for prefixes of {int(stop.max())} tokens"
            raise InputError("capacity", self._capacity, hint)
