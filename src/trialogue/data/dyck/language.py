"""Dyck languages: strings of well-nested brackets of several types, with the distributions of the thesis.

With `complete=True`, all brackets of a string of `length` tokens are closed. The probabilities are equations 3.3 and
3.4 of the thesis with one correction. The last exponent must count the closing brackets at positions i with d(w_1..i) <
D - i, where d is the number of open brackets and D is the length. With the printed <=, forced closing brackets are
counted too, and the probabilities of all strings of length 4 sum to 0.375. With `complete=False`, strings are prefixes
of balanced strings (equation 2.39).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.arrays import integer_tensor, real_tensor
from trialogue.compilation import run_over_rows
from trialogue.data.dyck.kernels import DyckError, State, cumulative_thresholds, draw, match, scan
from trialogue.errors import InputError
from trialogue.oracles import Decoding, PrefixOracle, Verifier
from trialogue.randomness import derive_seed
from trialogue.validation import Count, Natural, Probability, check, integer_range, validated


class DyckErrors(NamedTuple):
    """Position and kind of the first error of each of n strings.

    Attributes:
        position: Position (n,) int64 of the error, or -1 if there is none.
        kind: Kind (n,) int64 of the error as a `DyckError`, 0 if there is none.
    """

    position: Tensor
    kind: Tensor


class _Scan(NamedTuple):
    errors: DyckErrors
    state: Tensor  # `State` (n,) int64
    top: Tensor  # type (n,) int64 of the innermost open bracket, or -1
    log_prob: Tensor  # (n,) float64
    lengths: Tensor  # (n,) int64


class Dyck(PrefixOracle, Verifier):
    """Distribution of well-nested bracket strings, such as "([])()".

    It is also a language model with exact probabilities, and a verifier that accepts these strings. Token 2t
    opens a bracket of type t, and token 2t + 1 closes it. Whenever a bracket can be opened or closed, it
    opens with probability `open_prob`, and has type t with probability `type_probs[t]`.

    Methods accept integer tokens (n, width) and the `lengths` (n,) of the rows (default: `width`). They run
    compiled code on the CPU and return results on the device of the tokens.

    Args:
        length: Number of tokens of a string, an even number for complete strings.
        type_probs: Positive probability of each bracket type. They sum to 1 within 1e-6.
        open_prob: Probability that the next token opens a bracket if it could also close one, above 0 and
            below 1.
        max_depth: Maximum number of open brackets (default: no maximum).
        complete: Whether all brackets of a string are closed (default). Otherwise strings are prefixes of
            balanced strings.

    Raises:
        InputError: If an argument is invalid.

    Example:
        >>> from trialogue.data import Dyck
        >>> dyck = Dyck(length=8)
        >>> strings = dyck.sample(3)
        >>> dyck.is_member(strings)
        tensor([True, True, True])
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
        if complete and length % 2:
            raise InputError("length", length, "must be even for complete strings")
        probs = real_tensor("type_probs", type_probs, "give a sequence of probabilities")
        total = math.fsum(probs.flatten().tolist())
        if probs.ndim != 1 or not bool((probs > 0).all()) or not abs(total - 1) <= 1e-6:
            raise InputError("type_probs", type_probs, "must be positive and sum to 1")
        self.length, self.open_prob, self.max_depth, self.complete = length, open_prob, max_depth, complete
        self.type_probs = tuple(p / total for p in probs.tolist())
        self.vocab_size, self.max_length = 2 * len(self.type_probs), length

        self._max_depth = length + 1 if max_depth is None else max_depth
        remaining = np.arange(length, 0, -1) if complete else np.full(length, length + 1)
        self._ceiling = np.minimum(self._max_depth, remaining)
        distribution = np.zeros((len(State) - 1, len(self.type_probs) + 1))
        distribution[State.OUTSIDE, :-1] = self.type_probs
        distribution[State.FREE, :-1] = open_prob * distribution[State.OUTSIDE, :-1]
        distribution[State.FREE, -1] = 1 - open_prob
        distribution[State.FORCED, -1] = 1
        self._thresholds = cumulative_thresholds(distribution)
        with np.errstate(divide="ignore"):
            self._log_distribution = np.log(distribution)

    def __repr__(self) -> str:
        return (
            f"Dyck(length={self.length}, type_probs={self.type_probs}, open_prob={self.open_prob}, "
            f"max_depth={self.max_depth}, complete={self.complete})"
        )

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """Sample independent strings.

        Args:
            n: Number of strings.
            seed: Random seed (default: 0). String i depends on the seed and on i only.

        Returns:
            Tokens (n, length) int64.
        """
        return self._draw(n, (self.length, self.length), derive_seed(seed, "dyck", "sample"))[0]

    def sample_prompts(
        self, n: int, lengths: tuple[int, int] = (25, 31), seed: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Sample prefixes of strings with uniformly distributed lengths (Definition 3.2.2 of the thesis).

        The prompts are independent of the strings of `sample` with the same seed.

        Args:
            n: Number of prompts.
            lengths: Minimum and maximum length, both inclusive (default: 25 and 31).
            seed: Random seed (default: 0). Prompt i depends on the seed, `lengths` and i only.

        Returns:
            Tokens (n, lengths[1]) int64, right-padded with zeros, and lengths (n,) int64.
        """
        hint = f"must be a range within 0..{self.length}"
        bounds = integer_tensor("lengths", lengths, hint).tolist()
        if np.shape(bounds) != (2,) or not 0 <= bounds[0] <= bounds[1] <= self.length:
            raise InputError("lengths", lengths, hint)
        return self._draw(n, (bounds[0], bounds[1]), derive_seed(seed, "dyck", "prompts"))

    def _draw(self, n: int, lengths: tuple[int, int], seed: int) -> tuple[Tensor, Tensor]:
        n = check("n", n, Natural)
        # NumPy allocates large arrays in huge pages. With torch, page faults would take half of the time.
        tokens, row_lengths = np.empty((n, lengths[1]), np.int64), np.empty(n, np.int64)
        inputs = (np.uint64(seed), *lengths, self._ceiling, self._thresholds)
        run_over_rows(draw, n, lengths[1], *inputs, tokens, row_lengths)
        return torch.from_numpy(tokens), torch.from_numpy(row_lengths)

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-probability of each complete sequence of `length` tokens.

        Args:
            x: Strings (n, length) of integer tokens.

        Returns:
            Log-probabilities (n,) float64, -inf for strings with an error.
        """
        x = integer_tensor("x", x, "must be integer tokens (n, length)")
        if x.ndim != 2 or x.shape[1] != self.length:
            raise InputError("x", tuple(x.shape), f"must have the shape (n, {self.length})")
        return self._scan(x).log_prob

    def prefix_log_prob(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the log-probability that a random string starts with each prefix.

        Args:
            tokens: Prefixes (n, width), right-padded.
            lengths: Lengths (n,) of the prefixes (default: `width`).

        Returns:
            Log-probabilities (n,) float64, -inf for prefixes that start no string.
        """
        return self._scan(tokens, lengths).log_prob

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the log-probabilities of the next token after each prefix.

        The distribution is uniform if no token can follow, because the prefix has an error or is complete.

        Args:
            tokens: Prefixes (n, width), right-padded.
            lengths: Lengths (n,) of the prefixes.

        Returns:
            Log-probabilities (n, vocab_size) float64.
        """
        scanned = self._scan(tokens, lengths)
        log_probs = self._continuations(scanned)
        log_probs[scanned.state == State.STOPPED] = -math.log(self.vocab_size)
        return log_probs

    def _continuations(self, scanned: _Scan) -> Tensor:
        stopped = scanned.state == State.STOPPED
        # The table has no row for stopped strings, so their row is overwritten.
        table = torch.from_numpy(self._log_distribution).to(scanned.state.device)
        by_type = table[scanned.state.clamp_max(State.FORCED)]
        by_type[stopped] = -math.inf
        shape = (len(by_type), self.vocab_size)
        log_probs = torch.full(shape, -math.inf, dtype=torch.float64, device=by_type.device)
        log_probs[:, 0::2] = by_type[:, :-1]
        closing = 2 * scanned.top.clamp_min(0)[:, None] + 1
        return log_probs.scatter_(1, closing, by_type[:, -1:])

    def is_prefix(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return whether each prefix is the start of some string of the language.

        Args:
            tokens: Prefixes (n, width), right-padded.
            lengths: Lengths (n,) of the prefixes (default: `width`).

        Returns:
            Bools (n,).
        """
        return self._scan(tokens, lengths).errors.position < 0

    def is_member(self, tokens: Tensor, lengths: Tensor | None = None, eos: int | None = None) -> Tensor:
        """Return whether each row is a string of the language, optionally followed by `eos`.

        Args:
            tokens: Strings (n, width), right-padded.
            lengths: Lengths (n,) (default: up to and including the first `eos`, or `width` if there is none).
            eos: Token that may end a string (default: none).

        Returns:
            Bools (n,).
        """
        return self.errors(tokens, lengths, eos).position < 0

    def errors(self, tokens: Tensor, lengths: Tensor | None = None, eos: int | None = None) -> DyckErrors:
        """Find the first error of each row, where each row is a finished string.

        The first error is the first token after which the prefix cannot be completed to a string of the language.
        A valid prefix that is too short has the error END_INCORRECT at its end.

        Args:
            tokens: Strings (n, width), right-padded.
            lengths: Lengths (n,) (default: up to and including the first `eos`, or `width` if there is none).
            eos: Token that may end a string (default: none).

        Returns:
            Position and kind of the first error of each row.
        """
        scanned = self._scan(tokens, lengths, eos)
        position, kind = scanned.errors
        short = (position < 0) & (scanned.lengths < self.length)
        return DyckErrors(
            torch.where(short, scanned.lengths, position), kind.masked_fill(short, DyckError.END_INCORRECT)
        )

    def first_error(self, tokens: Tensor, lengths: Tensor | None = None, eos: int | None = None) -> Tensor:
        """Return the position of the first error of each row, where each row is a finished string. See `errors`.

        Args:
            tokens: Strings (n, width), right-padded.
            lengths: Lengths (n,) (default: up to and including the first `eos`, or `width` if there is none).
            eos: Token that may end a string (default: none).

        Returns:
            Positions (n,) int64, or -1 if there is no error.
        """
        return self.errors(tokens, lengths, eos).position

    def depth(self, x: Tensor) -> Tensor:
        """Count the opening minus the closing brackets up to and including each token.

        Padding tokens are counted as brackets.

        Args:
            x: Brackets (n, width).

        Returns:
            Depths (n, width) int64.
        """
        return (1 - 2 * (self._brackets(x) & 1)).cumsum(1)

    def matching(self, x: Tensor) -> Tensor:
        """Find the matching bracket of each bracket.

        A closing bracket removes the innermost open bracket from the stack. The two match if their types are equal.

        Args:
            x: Brackets (n, width).

        Returns:
            Positions (n, width) int64 of the matching brackets, or -1 if a bracket has none.
        """
        x = self._brackets(x)
        tokens = x.cpu().contiguous()
        partner = torch.empty_like(tokens)
        run_over_rows(match, *tokens.shape, tokens.numpy(), partner.numpy())
        return partner.to(x.device)

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the types of the open brackets of each prefix, which determine its possible continuations.

        Args:
            tokens: Prefixes (n, width), right-padded.
            lengths: Lengths (n,) of the prefixes.

        Returns:
            Types (n, width) int64 from the outermost to the innermost bracket, padded with -1. All entries of
            a row are -2 after an error.
        """
        dead = self._scan(tokens, lengths).errors.position >= 0
        return self._open_types(tokens, lengths).masked_fill(dead[:, None], -2)

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return integer keys that are equal for rows with the same valid continuations.

        The key of a row contains the types of its open brackets, from the outermost to the innermost.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) of the rows.

        Returns:
            Keys (n, capacity) int64. All entries are -2 for rows that cannot become strings of the language.
        """
        open_types = self._open_types(decoding.tokens[rows], decoding.lengths[rows])
        return open_types.masked_fill((self.values(decoding, rows) == 0)[:, None], -2)

    def _open_types(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        counted = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        # Tokens that do not count are replaced by an opening bracket, which matches no earlier bracket.
        brackets = tokens.where(counted & (tokens < self.vocab_size), 0)
        stays_open = counted & (brackets % 2 == 0) & (self.matching(brackets) < 0)
        order = stays_open.byte().argsort(dim=1, descending=True, stable=True)
        return (brackets // 2).masked_fill(~stays_open, -1).gather(1, order)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return 1 for each row that is or can become a string of the language, and 0 for other rows.

        A complete row ends with an end-of-sequence token, or at its maximum length `decoding.limit`.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) of the rows.

        Returns:
            Values (n,) float64.
        """
        scanned = self._scan(decoding.tokens[rows], decoding.lengths[rows], decoding.eos)
        viable = torch.where(
            decoding.complete[rows], scanned.lengths >= self.length, self._can_end(decoding, rows)
        )
        return (viable & (scanned.errors.position < 0)).double()

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return, for each possible next token, whether the extended row is or can become a string of the language.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) of the rows.

        Returns:
            Values (n, decoding.vocab_size) float64, 1 for yes and 0 for no.

        Raises:
            InputError: If the vocabulary of the batch has fewer tokens than the language.
        """
        if decoding.vocab_size < self.vocab_size:
            raise InputError("decoding.vocab_size", decoding.vocab_size, f"must be >= {self.vocab_size}")
        scanned = self._scan(decoding.tokens[rows], decoding.lengths[rows], decoding.eos)
        values = torch.zeros(len(rows), decoding.vocab_size, dtype=torch.float64, device=scanned.state.device)
        possible = self._continuations(scanned) > -math.inf
        values[:, : self.vocab_size] = (possible & self._can_end(decoding, rows)[:, None]).double()
        if decoding.eos is not None:
            is_member = (scanned.errors.position < 0) & (scanned.lengths == self.length)
            values[:, decoding.eos] = is_member.double()
        return values

    def _can_end(self, decoding: Decoding, rows: Tensor) -> Tensor:
        limit = decoding.limit[rows]
        return (limit == self.length) if decoding.eos is None else (limit >= self.length)

    def _brackets(self, x: Tensor) -> Tensor:
        """Return `x` (n, width) as int64, after a check that all tokens are brackets."""
        x = integer_tensor("x", x, "must be integer tokens (n, width)")
        if x.ndim != 2:
            raise InputError("x", tuple(x.shape), "must be integer tokens (n, width)")
        if x.numel() and not 0 <= int(x.min()) <= int(x.max()) < self.vocab_size:
            raise InputError("x", [int(x.min()), int(x.max())], f"tokens must be in 0..{self.vocab_size - 1}")
        return x

    def _scan(self, tokens: Tensor, lengths: Tensor | None = None, eos: int | None = None) -> _Scan:
        tokens = integer_tensor("tokens", tokens, "must be integers of the shape (n, width)")
        if tokens.ndim != 2:
            raise InputError("tokens", tuple(tokens.shape), "must be integers of the shape (n, width)")
        n, width = tokens.shape
        if eos is not None:
            hint = f"must not be a bracket, so at least {self.vocab_size}, and below 2^63"
            eos = check("eos", eos, integer_range(self.vocab_size, 2**63 - 1), hint)
        if lengths is None:
            # The length of a row includes its end-of-sequence token, if any.
            before = torch.full((n,), width) if eos is None else ((tokens == eos).cumsum(1) == 0).sum(1)
            lengths = before if eos is None else (before + 1).clamp_max(width)
        else:
            hint = f"must be {n} integers in 0..{width}"
            lengths = integer_tensor("lengths", lengths, hint)
            if lengths.shape != (n,) or (n and not 0 <= int(lengths.min()) <= int(lengths.max()) <= width):
                raise InputError("lengths", lengths.tolist(), hint)
        rows, stops = tokens.cpu().contiguous(), lengths.cpu().contiguous()
        position, error, state, top = torch.empty(4, n, dtype=torch.int64)
        log_prob = torch.empty(n, dtype=torch.float64)
        distribution = (-1 if eos is None else eos, self._max_depth, self._ceiling, self._log_distribution)
        outputs = (position.numpy(), error.numpy(), state.numpy(), top.numpy(), log_prob.numpy())
        run_over_rows(scan, n, width, rows.numpy(), stops.numpy(), *distribution, *outputs)
        position, error, state, top, log_prob, stops = (
            column.to(tokens.device) for column in (position, error, state, top, log_prob, stops)
        )
        return _Scan(DyckErrors(position, error), state, top, log_prob, stops)
