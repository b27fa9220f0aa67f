"""Dyck languages: strings of well-nested brackets of several types, and the distributions the thesis puts on them.

With `complete=True` strings are balanced at exactly `length`: equations 3.3 and 3.4, where the last exponent
must count the closing brackets with d(w_1..i) < D - i (with the printed <= forced ones are charged too, and
the probabilities of all strings of length 4 sum to 0.375). With `complete=False` strings are prefixes of
balanced strings, of bounded depth if `max_depth` is given: equation 2.39.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.arrays import real_tensor, whole_tensor
from trialogue.compilation import over_rows
from trialogue.data.dyck.kernels import DyckError, State, draw, match, scan, thresholds
from trialogue.errors import InputError
from trialogue.oracles import Decoding, PrefixOracle, Verifier
from trialogue.randomness import seed_of
from trialogue.validation import Count, Natural, Probability, check, integer_range, validated


class DyckErrors(NamedTuple):
    """The first error of each of n strings."""

    position: Tensor  # (n,) int64, -1 where there is none
    kind: Tensor  # (n,) int64, a `DyckError`


class _Scan(NamedTuple):
    errors: DyckErrors
    state: Tensor  # (n,) int64, a `State`
    top: Tensor  # (n,) int64: type of the innermost open bracket, or -1
    log_prob: Tensor  # (n,) float64
    lengths: Tensor  # (n,) int64


class Dyck(PrefixOracle, Verifier):
    """A distribution on bracket strings: sampler, exact autoregressive oracle and perfect process verifier at once.

    Token 2t opens a bracket of type t and token 2t+1 closes it. At depth 0 a bracket opens; at `max_depth`,
    or where a `complete` string has as many tokens left as brackets open, the innermost one closes; elsewhere
    a bracket opens with probability `open_prob`. One that opens has type t with probability `type_probs[t]`.

    Tensors of tokens are (n, width) integers; `lengths` (n,) says how many of a row count (all, if left out).
    Results are on the device of the tokens; the work is done on the CPU by compiled passes over the rows.
    """

    most = 1.0

    @validated
    def __init__(
        self,
        length: Count = 32,
        type_probs: Sequence[float] = (0.2, 0.8),
        open_prob: Probability = 0.5,
        max_depth: Count | None = None,
        complete: bool = True,
    ) -> None:
        """Make the distribution of strings of `length` tokens.

        Raises `InputError` where `length` is no whole number of at least 1, or odd for complete strings; where
        `type_probs` are not positive or do not sum to 1 within 1e-6; unless 0 < `open_prob` < 1; where `max_depth` is
        no whole number of at least 1.
        """
        if complete and length % 2:
            raise InputError("length", length, "must be even for complete strings")
        own = real_tensor("type_probs", type_probs, "give a sequence of probabilities")
        total = math.fsum(own.flatten().tolist())
        if own.ndim != 1 or not bool((own > 0).all()) or not abs(total - 1) <= 1e-6:
            raise InputError("type_probs", type_probs, "must be positive and sum to 1")
        self.length, self.open_prob, self.max_depth, self.complete = length, open_prob, max_depth, complete
        self.type_probs = tuple(p / total for p in own.tolist())
        self.vocab_size, self.max_length = 2 * len(self.type_probs), length

        self._max_depth = length + 1 if max_depth is None else max_depth
        remaining = np.arange(length, 0, -1) if complete else np.full(length, length + 1)
        self._ceiling = np.minimum(self._max_depth, remaining)
        distribution = np.zeros((len(State) - 1, len(self.type_probs) + 1))
        distribution[State.OUTSIDE, :-1] = self.type_probs
        distribution[State.FREE, :-1] = open_prob * distribution[State.OUTSIDE, :-1]
        distribution[State.FREE, -1] = 1 - open_prob
        distribution[State.FORCED, -1] = 1
        self._thresholds = thresholds(distribution)
        with np.errstate(divide="ignore"):
            self._log_law = np.log(distribution)

    def __repr__(self) -> str:
        return (
            f"Dyck(length={self.length}, type_probs={self.type_probs}, open_prob={self.open_prob}, "
            f"max_depth={self.max_depth}, complete={self.complete})"
        )

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """Draw strings (n, length) int64; string i depends on `seed` and i alone."""
        return self._draw(n, (self.length, self.length), seed_of(seed, "dyck", "sample"))[0]

    def sample_prompts(
        self, n: int, lengths: tuple[int, int] = (25, 31), seed: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Draw prefixes whose lengths are uniform on `lengths`, both ends included (Definition 3.2.2).

        Returns tokens (n, lengths[1]) int64, right-padded with zeros, and lengths (n,) int64. Prompt i
        depends on `seed` and i alone, and is independent of what `sample` draws with the same seed.
        """
        hint = f"must be a range within 0..{self.length}"
        bounds = whole_tensor("lengths", lengths, hint).tolist()
        if np.shape(bounds) != (2,) or not 0 <= bounds[0] <= bounds[1] <= self.length:
            raise InputError("lengths", lengths, hint)
        return self._draw(n, (bounds[0], bounds[1]), seed_of(seed, "dyck", "prompts"))

    def _draw(self, n: int, lengths: tuple[int, int], seed: int) -> tuple[Tensor, Tensor]:
        n = check("n", n, Natural)
        # numpy asks for huge pages where torch does not, and first touching small ones takes half of the time.
        tokens, drawn = np.empty((n, lengths[1]), np.int64), np.empty(n, np.int64)
        distribution = (np.uint64(seed), *lengths, self._ceiling, self._thresholds)
        over_rows(draw, n, lengths[1], *distribution, tokens, drawn)
        return torch.from_numpy(tokens), torch.from_numpy(drawn)

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-probability (n,) float64 of strings (n, length), -inf where they have an error."""
        x = whole_tensor("x", x, "must be integer tokens (n, length)")
        if x.ndim != 2 or x.shape[1] != self.length:
            raise InputError("x", tuple(x.shape), f"must have the shape (n, {self.length})")
        return self._scan(x).log_prob

    def prefix_log_prob(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Log-probability (n,) float64 that a string begins with the prefix, -inf where none does."""
        return self._scan(tokens, lengths).log_prob

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab_size) float64 of the next token.

        Where no token may follow (the prefix has an error, or the string is complete) the distribution says nothing,
        and the answer is the uniform distribution.
        """
        scanned = self._scan(tokens, lengths)
        answer = self._continuations(scanned)
        answer[scanned.state == State.STOPPED] = -math.log(self.vocab_size)
        return answer

    def _continuations(self, scanned: _Scan) -> Tensor:
        stopped = scanned.state == State.STOPPED
        # The table has no row for stopped strings; theirs is overwritten.
        distribution = torch.from_numpy(self._log_law).to(scanned.state.device)[
            scanned.state.clamp_max(State.FORCED)
        ]
        distribution[stopped] = -math.inf
        answer = torch.full(
            (len(distribution), self.vocab_size), -math.inf, dtype=torch.float64, device=distribution.device
        )
        answer[:, 0::2] = distribution[:, :-1]
        closing = 2 * scanned.top.clamp_min(0)[:, None] + 1
        return answer.scatter_(1, closing, distribution[:, -1:])

    def is_prefix(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Whether (n,) bool some string begins so."""
        return self._scan(tokens, lengths).errors.position < 0

    def is_member(self, tokens: Tensor, lengths: Tensor | None = None, eos: int | None = None) -> Tensor:
        """Whether (n,) bool the row is a string of the distribution, alone or followed by `eos`."""
        return self.errors(tokens, lengths, eos).position < 0

    def errors(self, tokens: Tensor, lengths: Tensor | None = None, eos: int | None = None) -> DyckErrors:
        """Position and kind (n,) of the first error of each row, read as a string that ends.

        The first error is the first token after which no string of the distribution can be completed. A string that is
        too short but otherwise right has END_INCORRECT at its end, where a token is missing. With `eos`, a
        string may end with that token or without it, and where no `lengths` are given a row ends at its first
        `eos`: what follows is padding.
        """
        scanned = self._scan(tokens, lengths, eos)
        position, kind = scanned.errors
        short = (position < 0) & (scanned.lengths < self.length)
        return DyckErrors(
            torch.where(short, scanned.lengths, position), kind.masked_fill(short, DyckError.END_INCORRECT)
        )

    def first_error(self, tokens: Tensor, lengths: Tensor | None = None, eos: int | None = None) -> Tensor:
        """Position (n,) int64 of the first error, -1 where there is none (see `errors`)."""
        return self.errors(tokens, lengths, eos).position

    def depth(self, x: Tensor) -> Tensor:
        """Opened minus closed brackets (n, width) int64 after each token; padding counts as what it is."""
        return (1 - 2 * (self._brackets(x) & 1)).cumsum(1)

    def matching(self, x: Tensor) -> Tensor:
        """Position (n, width) int64 of each bracket's partner, -1 where it has none.

        A closing bracket takes the innermost open one off the stack; they are partners if their types agree.
        """
        x = self._brackets(x)
        tokens = x.cpu().contiguous()
        partner = torch.empty_like(tokens)
        over_rows(match, *tokens.shape, tokens.numpy(), partner.numpy())
        return partner.to(x.device)

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Types (n, width) int64 of the open brackets, outermost first, and -1 behind them; -2 after an error."""
        dead = self._scan(tokens, lengths).errors.position >= 0
        return self._open_types(tokens, lengths).masked_fill(dead[:, None], -2)

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Types (n, capacity) int64 of the open brackets as for `sufficient`; -2 of what no string begins with."""
        open_types = self._open_types(decoding.tokens[rows], decoding.lengths[rows])
        return open_types.masked_fill((self.values(decoding, rows) == 0)[:, None], -2)

    def _open_types(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        counted = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        # An opening bracket closes nothing; rows with other tokens have an error.
        brackets = tokens.where(counted & (tokens < self.vocab_size), 0)
        stays_open = counted & (brackets % 2 == 0) & (self.matching(brackets) < 0)
        order = stays_open.byte().argsort(dim=1, descending=True, stable=True)
        return (brackets // 2).masked_fill(~stays_open, -1).gather(1, order)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """1 or 0 (n,) float64: a complete row is a string of the distribution, another row can become one.

        A row becomes a string by ending at its limit, if that is `length`, or else by an end of sequence.
        """
        scanned = self._scan(decoding.tokens[rows], decoding.lengths[rows], decoding.eos)
        viable = torch.where(
            decoding.complete[rows], scanned.lengths >= self.length, self._can_end(decoding, rows)
        )
        return (viable & (scanned.errors.position < 0)).double()

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """1 or 0 (n, decoding.vocab_size) float64: `values` of every one-token continuation."""
        if decoding.vocab_size < self.vocab_size:
            raise InputError("decoding.vocab_size", decoding.vocab_size, f"must be >= {self.vocab_size}")
        scanned = self._scan(decoding.tokens[rows], decoding.lengths[rows], decoding.eos)
        answer = torch.zeros(len(rows), decoding.vocab_size, dtype=torch.float64, device=scanned.state.device)
        possible = self._continuations(scanned) > -math.inf
        answer[:, : self.vocab_size] = (possible & self._can_end(decoding, rows)[:, None]).double()
        if decoding.eos is not None:
            whole = (scanned.errors.position < 0) & (scanned.lengths == self.length)
            answer[:, decoding.eos] = whole.double()
        return answer

    def _can_end(self, decoding: Decoding, rows: Tensor) -> Tensor:
        limit = decoding.limit[rows]
        return (limit == self.length) if decoding.eos is None else (limit >= self.length)

    def _brackets(self, x: Tensor) -> Tensor:
        """`x` (n, width) as int64, all of them tokens of the distribution."""
        x = whole_tensor("x", x, "must be integer tokens (n, width)")
        if x.ndim != 2:
            raise InputError("x", tuple(x.shape), "must be integer tokens (n, width)")
        if x.numel() and not 0 <= int(x.min()) <= int(x.max()) < self.vocab_size:
            raise InputError("x", [int(x.min()), int(x.max())], f"tokens must be in 0..{self.vocab_size - 1}")
        return x

    def _scan(self, tokens: Tensor, lengths: Tensor | None = None, eos: int | None = None) -> _Scan:
        tokens = whole_tensor("tokens", tokens, "must be integers of the shape (n, width)")
        if tokens.ndim != 2:
            raise InputError("tokens", tuple(tokens.shape), "must be integers of the shape (n, width)")
        n, width = tokens.shape
        if eos is not None:
            hint = f"must not be a bracket, so at least {self.vocab_size}, and below 2^63"
            eos = check("eos", eos, integer_range(self.vocab_size, 2**63 - 1), hint)
        if lengths is None:
            # The end of sequence is itself a token of the row, unless the row has none.
            before = torch.full((n,), width) if eos is None else ((tokens == eos).cumsum(1) == 0).sum(1)
            lengths = before if eos is None else (before + 1).clamp_max(width)
        else:
            hint = f"must be {n} whole numbers in 0..{width}"
            lengths = whole_tensor("lengths", lengths, hint)
            if lengths.shape != (n,) or (n and not 0 <= int(lengths.min()) <= int(lengths.max()) <= width):
                raise InputError("lengths", lengths.tolist(), hint)
        rows, stops = tokens.cpu().contiguous(), lengths.cpu().contiguous()
        position, error, state, top = torch.empty(4, n, dtype=torch.int64)
        log_prob = torch.empty(n, dtype=torch.float64)
        distribution = (-1 if eos is None else eos, self._max_depth, self._ceiling, self._log_law)
        outputs = (position.numpy(), error.numpy(), state.numpy(), top.numpy(), log_prob.numpy())
        over_rows(scan, n, width, rows.numpy(), stops.numpy(), *distribution, *outputs)
        position, error, state, top, log_prob, stops = (
            column.to(tokens.device) for column in (position, error, state, top, log_prob, stops)
        )
        return _Scan(DyckErrors(position, error), state, top, log_prob, stops)
