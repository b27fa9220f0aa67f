"""Losses: what a network is asked to predict."""

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.networks.transformer import Transformer

_IGNORED = -100


def next_token_loss(model: Transformer, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Mean cross-entropy, in nats per target, of every token and of the end of each sequence.

    `tokens` (n, L) int64 are data tokens without BOS and EOS, right-padded where `lengths` (n,) are given: the model
    reads BOS and the tokens, and predicts the tokens and EOS, 1 + length targets per sequence. Raises `InputError`
    where `tokens` is not a non-empty matrix.
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
    """Mean cross-entropy, in nats per target, of every token of packed rows: no row ends where its tokens do.

    `tokens` (n, L) int64 are rows that are cut anywhere from a longer text, as those of `trialogue.data.Corpus`: the
    model reads BOS and all but the last, and predicts them all, L targets per row, and never EOS. Raises `InputError`
    where `tokens` is not a non-empty matrix.
    """
    _require_data(tokens, model.eos)
    if not tokens.numel():
        raise InputError("tokens", tuple(tokens.shape), "give rows of at least one token")
    inputs = torch.cat((tokens.new_full((len(tokens), 1), model.bos), tokens[:, :-1]), 1)
    return F.cross_entropy(model(inputs).flatten(0, 1).float(), tokens.flatten())


def _require_data(tokens: Tensor, vocab_size: int, lengths: Tensor | None = None) -> None:
    """Raise `InputError` unless `tokens` is an int64 matrix of ids from 0 to `vocab_size` - 1 within `lengths` (n,).

    Tensors on an accelerator are not read, because that would stop its queue at every step.
    """
    if not isinstance(tokens, Tensor) or tokens.dtype != torch.int64:
        given = getattr(tokens, "dtype", type(tokens).__name__)
        raise InputError("tokens", given, "give a tensor of dtype torch.int64, for example tokens.long()")
    if tokens.ndim != 2 or not len(tokens):
        raise InputError("tokens", tuple(tokens.shape), "give a matrix (rows, length) with at least one row")
    if lengths is not None and lengths.shape != tokens.shape[:1]:
        raise InputError("lengths", tuple(lengths.shape), f"use the shape ({len(tokens)},)")
    if tokens.device.type != "cpu":
        return
    wrong = (tokens < 0) | (tokens >= vocab_size)
    if lengths is not None:
        wrong &= torch.arange(tokens.shape[1]) < lengths[:, None]
    if bool(wrong.any()):
        raise InputError("tokens", int(tokens[wrong][0]), f"use token ids from 0 to {vocab_size - 1}")
