"""Exact expected number of model calls of two samplers (thesis, Definitions 3.1.4 to 3.1.6).

- Rejection sampling samples complete sequences, one call per token, until the verifier accepts one.
- Tokenwise rejection samples the next token until the verifier accepts the extended prefix.

Prefixes with the same continuations are merged. Costs can therefore be computed at any length for tasks with
few distinct prefixes, for example the 2.3e12 Dyck strings of length 32.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Unpack

import numpy as np
import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Verifier, as_oracle
from trialogue.samplers.exact.elimination import SMALLEST
from trialogue.samplers.exact.prefix_trees import TreeLimits
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.prompts import maximum_lengths, require_known_tokens, token_ids
from trialogue.validation import Count, validated
from trialogue.verifiers.functions.function import VerifierLike, as_verifier

Prompt = tuple[int, ...]

MAX_NODES = 1 << 19
"""Default limit on prefixes of one length: a binary tree of depth 20."""

_ROWS_AT_ONCE = 1 << 14


def rejection_cost(oracle: Autoregressive, verifier: VerifierLike, **limits: Unpack[TreeLimits]) -> float:
    """Return the expected number of model calls until rejection sampling returns an accepted sequence.

    Rejection sampling samples complete sequences, one call per token, until the verifier accepts one. The
    cost is the expected sequence length divided by the acceptance probability, and infinite if no sequence is
    accepted.

    Args:
        oracle: Next-token model.
        verifier: Verifier of complete sequences.
        limits: `prompt` to start from, `max_new_tokens`, and the limit `max_nodes` on the number of distinct
            prefixes of one length.

    Raises:
        InputError: If more than `max_nodes` prefixes of one length are distinct, or `generate` would reject
            the arguments.
    """
    tree = _Tree.of(oracle, verifier, **limits)
    calls = accepted = 0.0
    level = tree.root()
    while len(level.weights):
        step = tree.step(level, ends_only=True)
        calls += float(level.weights.sum())
        reached = level.weights[:, None] * step.distributions
        accepted += float(reached[step.ends & step.accepted].sum())
        level = tree.below(level, reached.masked_fill(step.ends, 0.0))
    if 0 < accepted < SMALLEST:
        raise _make_rare_output_error(accepted)
    return calls / accepted if accepted > 0 else math.inf


@validated
def tokenwise_cost(
    oracle: Autoregressive,
    verifier: VerifierLike,
    *,
    max_rejections: Count | None = None,
    **limits: Unpack[TreeLimits],
) -> float:
    """Return the expected number of model calls of tokenwise rejection sampling.

        cost = sum over prefixes s of q(s) / a(s)

    Tokenwise rejection samples the next token until the verifier accepts the extended prefix. q(s) is the
    probability of reaching s, and a(s) the probability that a sampled token is accepted after s. The cost is
    infinite if a prefix with a(s) = 0 is reached without a limit on rejections.

    Args:
        oracle: Next-token model.
        verifier: Verifier of prefixes and complete sequences.
        max_rejections: Largest number of samples per position (default: no limit).
        limits: `prompt` to start from, `max_new_tokens`, and the limit `max_nodes` on the number of distinct
            prefixes of one length.

    Raises:
        InputError: As for `rejection_cost`, or if some a(s) is positive but below 1e-300.
    """
    return _compute_tokenwise_cost(_Tree.of(oracle, verifier, **limits), max_rejections)[0]


@validated
def tokenwise_success(
    oracle: Autoregressive,
    verifier: VerifierLike,
    *,
    max_rejections: Count | None = None,
    **limits: Unpack[TreeLimits],
) -> float:
    """Return the probability that tokenwise rejection sampling produces a complete sequence.

    It fails at a prefix after which no sampled token is accepted, or not within `max_rejections` samples.

    Args:
        oracle: Next-token model.
        verifier: Verifier of prefixes and complete sequences.
        max_rejections: Largest number of samples per position (default: no limit).
        limits: `prompt` to start from, `max_new_tokens`, and the limit `max_nodes` on the number of distinct
            prefixes of one length.

    Raises:
        InputError: As for `tokenwise_cost`.
    """
    return _compute_tokenwise_cost(_Tree.of(oracle, verifier, **limits), max_rejections)[1]


def _compute_tokenwise_cost(tree: "_Tree", max_rejections: int | None) -> tuple[float, float]:
    most = math.inf if max_rejections is None else max_rejections
    calls = success = 0.0
    level = tree.root()
    while len(level.weights):
        step = tree.step(level)
        kept = step.distributions * step.accepted
        chance = kept.sum(1).clamp_max(1.0)
        if bool(((chance > 0) & (chance < SMALLEST)).any()):
            raise _make_rare_output_error(float(chance[chance > 0].min()))
        draws = _compute_expected_draws(chance, most)
        calls += float(level.weights @ draws)
        # Accepted tokens are drawn in proportion to their probabilities.
        share = kept / chance.masked_fill(chance == 0, 1.0)[:, None]
        reached = (level.weights * _compute_acceptance(chance, most))[:, None] * share
        success += float(reached[step.ends].sum())
        level = tree.below(level, reached.masked_fill(step.ends, 0.0))
    return calls, success


def _make_rare_output_error(chance: float) -> InputError:
    hint = f"the acceptance probability is below {SMALLEST:g}, the limit of double precision"
    return InputError("verifier", chance, hint)


def _compute_acceptance(chance: Tensor, most: float) -> Tensor:
    """Return the probability (n,) that at least one of `most` independent draws is accepted."""
    if most == math.inf:
        return (chance > 0).double()
    # 1 - (1 - a)^R would lose the digits of a small acceptance probability a.
    return -torch.expm1(most * torch.log1p(-chance))


def _compute_expected_draws(chance: Tensor, most: float) -> Tensor:
    """Return the expected number of draws (n,), at most `most`, up to the first accepted one."""
    return torch.where(chance > 0, _compute_acceptance(chance, most) / chance, most)


class _Level(NamedTuple):
    """Distinct prefixes of one length.

    The n prefixes are stored as token ids `tokens` (n, length) int64, with `weights` (n,).
    """

    tokens: Tensor
    weights: Tensor


class _Step(NamedTuple):
    """Next tokens after n prefixes: the probability of each, and whether it completes an accepted sequence."""

    distributions: Tensor
    ends: Tensor
    accepted: Tensor


@dataclass(frozen=True)
class _Tree:
    oracle: Autoregressive
    verifier: Verifier
    prompt: Prompt
    limit: int
    max_nodes: int

    @staticmethod
    @validated
    def of(
        oracle: Autoregressive,
        verifier: VerifierLike,
        prompt: Prompt = (),
        max_new_tokens: int | None = None,
        max_nodes: Count = MAX_NODES,
    ) -> "_Tree":
        oracle = as_oracle(oracle)
        tokens = token_ids("prompt", prompt)[None]
        length = torch.tensor([tokens.shape[1]])
        require_known_tokens(tokens, length, oracle.vocab_size)
        limit = int(maximum_lengths(oracle, length, max_new_tokens))
        if tokens.shape[1] == limit or (oracle.eos is not None and prompt[-1:] == (oracle.eos,)):
            raise InputError("prompt", prompt, "it is already complete: give an incomplete prompt")
        return _Tree(oracle, as_verifier(verifier), tuple(tokens[0].tolist()), limit, max_nodes)

    def root(self) -> _Level:
        return _Level(torch.tensor([self.prompt], dtype=torch.int64), torch.ones(1, dtype=torch.float64))

    @torch.inference_mode()
    def step(self, level: _Level, ends_only: bool = False) -> _Step:
        """Compute the next tokens of each prefix. With `ends_only`, the verifier judges complete sequences only."""
        parts = []
        for batch in self._batches(level.tokens):
            rows = torch.arange(len(batch.tokens))
            distributions = batch.log_probs(rows).double().exp()
            if not bool((distributions.sum(1) > 0).all()):
                hint = "return log-probabilities without NaN, with a positive probability in every row"
                raise InputError("oracle", float(distributions.sum(1).min()), hint)
            ends = torch.full_like(distributions, level.tokens.shape[1] + 1 == self.limit, dtype=torch.bool)
            if self.oracle.eos is not None:
                ends[:, self.oracle.eos] = True
            is_verified = (distributions > 0) & (ends | (not ends_only))
            parts.append(
                _Step(
                    distributions, ends, CachedVerifier(self.verifier, batch).children(rows, is_verified) > 0
                )
            )
        return _Step(*map(torch.cat, zip(*parts, strict=True)))

    def below(self, level: _Level, weights: Tensor) -> _Level:
        """Return the prefixes that are one token longer and have positive weight, merging equivalent ones."""
        rows, token = weights.nonzero(as_tuple=True)
        length = level.tokens.shape[1] + 1
        if len(rows) > self.max_nodes:
            depth, vocab = self.limit - len(self.prompt), self.oracle.vocab_size
            hint = (
                f"{len(rows)} prefixes of {length} tokens, of up to {vocab}^{depth} sequences, must be distinguished: "
                "allow more, take fewer tokens, let the oracle and the verifier identify equivalent prefixes "
                "(`sufficient`, `residuals`), or measure the mean of `generate(...).queries`"
            )
            raise InputError("max_nodes", self.max_nodes, hint)
        tokens = torch.cat((level.tokens[rows], token[:, None]), 1)
        return self._merged(_Level(tokens, weights[rows, token]))

    @torch.inference_mode()
    def _merged(self, level: _Level) -> _Level:
        tokens = level.tokens
        if not len(tokens):
            return level
        memory = self.oracle.sufficient(tokens, torch.full((len(tokens),), tokens.shape[1]))
        residuals = [self.verifier.residuals(b, torch.arange(len(b.tokens))) for b in self._batches(tokens)]
        known = [residual for residual in residuals if residual is not None]
        if len(known) < len(residuals):
            return level
        # The statistics may have no column at all.
        columns = (torch.zeros_like(tokens[:, :1]), tokens if memory is None else memory, torch.cat(known))
        keys = torch.cat(columns, 1).numpy()
        alike = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.itemsize * keys.shape[1])))[:, 0]
        _, first, group = np.unique(alike, return_index=True, return_inverse=True)
        weights = torch.zeros(len(first), dtype=torch.float64)
        weights.index_add_(0, torch.from_numpy(group), level.weights)
        return _Level(tokens[torch.from_numpy(first)], weights)

    def _batches(self, tokens: Tensor) -> Iterator[Batch]:
        """Yield the prefixes `tokens` (n, length) in independent batches."""
        length, layers = tokens.shape[1], tuple(self.verifier.layers)
        for part in tokens.split(_ROWS_AT_ONCE):
            # One more position, so that complete sequences can be verified.
            batch = Batch(self.oracle, len(part), min(self.limit, length + 1), layers=layers)
            batch.select(torch.zeros(0, dtype=torch.int64))
            lengths = torch.full((len(part),), length)
            padded = torch.nn.functional.pad(part, (0, min(self.limit, length + 1) - length))
            batch.add(
                padded,
                lengths,
                torch.full_like(lengths, len(self.prompt)),
                torch.full_like(lengths, self.limit),
            )
            yield batch
