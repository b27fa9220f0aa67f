"""Next-token losses of causal transformers."""

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.networks.transformer import Transformer

_IGNORED = -100


def next_token_loss(model: Transformer, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Compute the mean cross-entropy of complete sequences, in nats per target.

    The model reads BOS and the tokens. It predicts the tokens and EOS, which gives length + 1 targets per sequence.

    Args:
        model: Causal transformer.
        tokens: Data tokens without BOS and EOS, (n, L) int64.
        lengths: Lengths of right-padded sequences, (n,) int64. All sequences have length L by default.

    Raises:
        InputError: If `tokens` is not a non-empty int64 matrix of data tokens.
    """
    _require_data(tokens, model.eos, lengths)
    n, longest = tokens.shape
    inputs = torch.cat((tokens.new_full((n, 1), model.bos), tokens), 1)
    targets = torch.cat((tokens, tokens.new_full((n, 1), model.eos)), 1)
    if lengths is not None:
        position = torch.arange(longest + 1, device=tokens.device)
        targets = targets.masked_fill(position == lengths[:, None], model.eos)
        targets = targets.masked_fill(position > lengths[:, None], _IGNORED)
    return F.cross_entropy(model(inputs).flatten(0, 1).float(), targets.flatten(), ignore_index=_IGNORED)


def packed_token_loss(model: Transformer, tokens: Tensor) -> Tensor:
    """Compute the mean cross-entropy of rows cut from a longer text, in nats per target.

    The model reads BOS and all tokens but the last. It predicts all L tokens and never EOS. The rows of
    `trialogue.data.Corpus` are of this kind.

    Args:
        model: Causal transformer.
        tokens: Data tokens, (n, L) int64.

    Raises:
        InputError: If `tokens` is not a non-empty int64 matrix of data tokens.
    """
    _require_data(tokens, model.eos)
    if not tokens.numel():
        raise InputError("tokens", tuple(tokens.shape), "give rows of at least one token")
    inputs = torch.cat((tokens.new_full((len(tokens), 1), model.bos), tokens[:, :-1]), 1)
    return F.cross_entropy(model(inputs).flatten(0, 1).float(), tokens.flatten())


def _require_data(tokens: Tensor, vocab_size: int, lengths: Tensor | None = None) -> None:
    """Raise `InputError` unless `tokens` is an int64 matrix of ids from 0 to `vocab_size` - 1 within `lengths`."""
    if not isinstance(tokens, Tensor) or tokens.dtype != torch.int64:
        given = getattr(tokens, "dtype", type(tokens).__name__)
        raise InputError("tokens", given, "give a tensor of dtype torch.int64, for example tokens.long()")
    if tokens.ndim != 2 or not len(tokens):
        raise InputError("tokens", tuple(tokens.shape), "give a matrix (rows, length) with at least one row")
    if lengths is not None and lengths.shape != tokens.shape[:1]:
        raise InputError("lengths", tuple(lengths.shape), f"use the shape ({len(tokens)},)")
    # Reading values from an accelerator would synchronise it in every step.
    if tokens.device.type != "cpu":
        return
    wrong = (tokens < 0) | (tokens >= vocab_size)
    if lengths is not None:
        wrong &= torch.arange(tokens.shape[1]) < lengths[:, None]
    if bool(wrong.any()):
        raise InputError("tokens", int(tokens[wrong][0]), f"use token ids from 0 to {vocab_size - 1}")
