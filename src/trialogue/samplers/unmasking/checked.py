"""Unmasking with a verifier, which masks a part of a rejected text again."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import PrefixOracle
from trialogue.randomness import Choose
from trialogue.samplers.chains.subsets import choose_members
from trialogue.samplers.prefix.values import values
from trialogue.samplers.unmasking.contract import Unmasking, put, require_unmasking
from trialogue.samplers.unmasking.ordered import Ordered
from trialogue.samplers.unmasking.stages import Stage, Staged, WrappedStage, stages_of
from trialogue.validation import Count, Natural, validated
from trialogue.verifiers.functions.function import VerifierLike, as_verifier

_LARGEST_NUMBER = 2**62


class CheckedState(NamedTuple):
    """State of `Checked`.

    Attributes:
        tokens: Token ids (rows, length) int64, 0 at masked positions.
        masked: Masked positions (rows, length) bool.
        free: Positions (rows, length) bool that do not belong to the prompt.
        inner: State of the wrapped sampler.
        left: Number (rows,) int64 of rejections after which positions are masked again.
        valid: Whether the verifier has accepted the complete text, (rows,) bool.
    """

    tokens: Tensor
    masked: Tensor
    free: Tensor
    inner: Any
    left: Tensor
    valid: Tensor


@validated
@dataclass(frozen=True)
class Checked(Staged[CheckedState]):
    """Judge each text by a verifier, and mask random positions of rejected texts again.

    The wrapped sampler then reveals these positions, and treats all other positions as its prompt. If all positions are
    masked again, accepted texts have the distribution of the wrapped sampler restricted to accepted texts.

    Args:
        verifier: The verifier, or a function of token ids. Values above 0 accept a text.
        sampler: The wrapped sampler (default: `Ordered()`).
        remask: Number of revealed positions that a rejection masks again, chosen uniformly (default: all positions
            outside of the prompt).
        quota: Largest number of times that positions of a text are masked again. A text that is rejected after that
            stays rejected (default: 10).
        partial: Whether to also judge the prefix before the first masked position after each pass, which needs a
            verifier of prefixes. Only complete texts are judged otherwise (default: False).
        eos: End-of-sequence token. The verifier receives the text up to the first one (default: none).
        judged_length: Number of tokens at the beginning that the verifier receives. Set it if the sequence ends with
            tokens that do not belong to the text (default: all).

    Raises:
        InputError: If `sampler` is not an unmasking sampler, or the verifier needs hidden states of a model.
    """

    verifier: VerifierLike
    sampler: Unmasking[Any] = field(default_factory=Ordered)
    remask: Count | None = None
    quota: Natural = 10
    partial: bool = False
    eos: Natural | None = None
    judged_length: Count | None = None

    def __post_init__(self) -> None:
        require_unmasking(self.sampler)
        if as_verifier(self.verifier).layers:
            hint = "use a verifier without hidden states of an autoregressive model"
            raise InputError("verifier", type(self.verifier).__name__, hint)

    def init(self, tokens: Tensor, masked: Tensor) -> CheckedState:
        """Return the state before the first pass, given `tokens` and `masked` positions (rows, length)."""
        inner = self.sampler.init(tokens, masked)
        left = torch.full_like(tokens[:, 0], self.quota)
        return CheckedState(inner.tokens, masked, masked, inner, left, torch.zeros_like(masked[:, 0]))

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages of the wrapped sampler, and the judgement of the texts."""
        return (*map(WrappedStage, stages_of(self.sampler)), self._judge)

    def _judge(self, state: CheckedState, conditionals: Tensor, choose: Choose) -> CheckedState:
        """Judge the texts after a pass of the wrapped sampler, and mask positions of rejected ones."""
        inner = state.inner
        complete = self.sampler.finished(inner)
        judged = torch.ones_like(complete)
        rows = judged.nonzero()[:, 0] if self.partial else complete.nonzero()[:, 0]
        if len(rows):
            lengths = (inner.masked[rows].cumsum(1) == 0).sum(1)
            judged[rows] = self._accepts(inner.tokens[rows], lengths, state.free[rows], conditionals.shape[2])
        judged &= ~complete | self.sampler.accepted(inner)
        again = ~judged & (state.left > 0)
        revealed = state.free & ~inner.masked
        size = revealed.sum(1) if self.remask is None else revealed.sum(1).clamp(max=self.remask)
        masked = inner.masked | choose_members(revealed, size * again, choose)
        tokens = inner.tokens.masked_fill(masked, 0)
        rows = again.nonzero()[:, 0]
        inner = put(inner, rows, self.sampler.init(tokens[rows], masked[rows]))
        return CheckedState(
            tokens, masked, state.free, inner, state.left - again.long(), complete & judged & ~again
        )

    def finished(self, state: CheckedState) -> Tensor:
        """Return which rows (rows,) bool of a state are complete, and accepted or rejected finally."""
        return self.sampler.finished(state.inner)

    def accepted(self, state: CheckedState) -> Tensor:
        """Return which rows (rows,) bool of a state have been accepted."""
        return state.valid

    def _accepts(self, tokens: Tensor, lengths: Tensor, free: Tensor, vocab_size: int) -> Tensor:
        """Return whether the verifier accepts the first `lengths` (rows,) tokens of each row."""
        limit = min(tokens.shape[1], self.judged_length or tokens.shape[1])
        lengths = torch.minimum(lengths, ends(tokens, self.eos)).clamp(max=limit)
        starts = torch.minimum(lengths, (free.cumsum(1) == 0).sum(1))
        tokens, lengths, starts = tokens.cpu(), lengths.cpu(), starts.cpu()
        rows, place = _distinct(tokens, lengths, starts, vocab_size)
        found = values(
            self.verifier,
            _Vocabulary(vocab_size, self.eos),
            (tokens[rows], lengths[rows]),
            prompt_lengths=starts[rows],
            max_length=limit,
        )
        return (found > 0)[place].to(free.device)


def _distinct(tokens: Tensor, lengths: Tensor, starts: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
    """Return one row of each text, and the place of the text of each row among them.

    Exact distributions have many rows with equal texts. Texts that are too long to be numbered count as different.
    """
    sites = tokens.shape[1]
    if vocab_size**sites * (sites + 1) ** 2 > _LARGEST_NUMBER:
        rows = torch.arange(len(tokens))
        return rows, rows
    number = lengths * (sites + 1) + starts
    shown = tokens.masked_fill(torch.arange(sites) >= lengths[:, None], 0)
    for site in range(sites):
        number = number * vocab_size + shown[:, site]
    known, place = number.unique(return_inverse=True)
    return torch.empty_like(known).scatter_(0, place, torch.arange(len(tokens))), place


def ends(tokens: Tensor, eos: int | None) -> Tensor:
    """Return the length (rows,) of each text of `tokens` (rows, length) up to its first end-of-sequence token."""
    if eos is None:
        return torch.full_like(tokens[:, 0], tokens.shape[1])
    return ((tokens == eos).cumsum(1) == 0).sum(1).add(1).clamp(max=tokens.shape[1])


class _Vocabulary(PrefixOracle):
    """Placeholder for a model, with a number of tokens but without probabilities."""

    def __init__(self, vocab_size: int, eos: int | None) -> None:
        self.vocab_size, self.eos = vocab_size, eos

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        del tokens
        return torch.zeros(len(lengths), self.vocab_size)
