"""Enumeration of all prefixes that a small model can generate."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, as_oracle, next_log_probs, pad_sequences
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.prompts import (
    maximum_lengths,
    replace_empty_prompts,
    require_known_tokens,
    token_ids,
)
from trialogue.samplers.prefix.values import values
from trialogue.validation import Count, check
from trialogue.verifiers.functions.function import VerifierLike, as_verifier

Sequence_ = tuple[int, ...]
_ROWS = 1024
_MAX_NUMBERS = 1 << 24
"""Largest number of next-token probabilities in memory, if the vocabulary is smaller."""
MAX_NODES = 1_000_000
"""Default of the largest number of prefixes."""


class TreeLimits(TypedDict, total=False):
    """Keyword arguments of `prefix_tree` and of functions that call it.

    Args:
        prompt: Token ids of the prompt.
        max_new_tokens: Maximum length of a completion.
        max_nodes: Largest number of prefixes.
    """

    prompt: Sequence_
    max_new_tokens: int | None
    max_nodes: int


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """All prefixes of positive probability under a model, ordered by length.

    The root of the tree is the prompt, the parent of a prefix is the prefix without its last token, and the leaves are
    the complete sequences.

    Args:
        oracle: The model.
        prefixes: Token ids of prompt and completion of each of n prefixes.
        parent: Index (n,) int64 of the prefix without its last token, -1 for the root.
        log_probs: Log-probability (n,) float64 of each completion so far.
        leaf: Whether each prefix (n,) is complete.
        longest: Maximum length of a sequence.
    """

    oracle: Autoregressive
    prefixes: list[Sequence_]
    parent: NDArray[np.int64]
    log_probs: NDArray[np.float64]
    leaf: NDArray[np.bool_]
    longest: int

    @property
    def start(self) -> int:
        """Length of the prompt."""
        return len(self.prefixes[0])

    @cached_property
    def depth(self) -> NDArray[np.int64]:
        """Number (n,) of tokens of the completion of each prefix, 0 for the prompt."""
        return np.array([len(prefix) for prefix in self.prefixes]) - self.start

    def values(self, verifier: VerifierLike, places: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Evaluate a verifier on prefixes, as in a run of a sampler.

        Args:
            verifier: The verifier.
            places: Indices (k,) of the prefixes (default: all).

        Returns:
            Values (k,) float64. Complete prefixes are evaluated as complete sequences.
        """
        chosen = range(len(self.prefixes)) if places is None else places.tolist()
        sequences = [self.prefixes[place] for place in chosen]
        judged = values(verifier, self.oracle, sequences, prompt_lengths=self.start, max_length=self.longest)
        answer: NDArray[np.float64] = judged.numpy()
        return answer


def prefix_tree(
    oracle: Autoregressive,
    *,
    prompt: Sequence_ = (),
    max_new_tokens: int | None = None,
    max_nodes: int = MAX_NODES,
    viable: VerifierLike | None = None,
    progress: bool = False,
) -> PrefixTree:
    """Enumerate all prefixes of positive probability under a model.

    Args:
        oracle: The model.
        prompt: Token ids of the prompt (default: empty).
        max_new_tokens: Maximum length of a completion (default: up to the oracle's `max_length`).
        max_nodes: Largest number of prefixes (default: 1,000,000).
        viable: Verifier that excludes prefixes of value zero and their continuations (default: none).
        progress: Whether to count the prefixes on standard error (default: False).

    Returns:
        The prefixes with their parents and log-probabilities.

    Raises:
        InputError: If there are more than `max_nodes` prefixes, or `generate` would raise it.
    """
    oracle, most = as_oracle(oracle), check("max_nodes", max_nodes, Count)
    tokens, lengths = replace_empty_prompts(oracle, *pad_sequences([token_ids("prompt", prompt).tolist()]))
    prompt = tuple(tokens[0].tolist())
    require_known_tokens(tokens, lengths, oracle.vocab_size)
    longest = int(maximum_lengths(oracle, lengths, max_new_tokens)[0])
    prefixes, parent, log_probs, leaf = [prompt], [-1], [0.0], [_complete(oracle, prompt, longest, True)]
    growing = [] if leaf[0] else [0]
    choose_batch_size = max(1, _MAX_NUMBERS // oracle.vocab_size)
    with tqdm(desc="prefixes of the model", unit="prefix", disable=not progress, leave=False) as bar:
        while growing:
            first = len(prefixes)
            for begin in range(0, len(growing), choose_batch_size):
                bar.update(len(prefixes) - bar.n)
                places = growing[begin : begin + choose_batch_size]
                tokens, lengths = pad_sequences([prefixes[place] for place in places], longest)
                # Samplers normalise single precision in the same way.
                distributions = next_log_probs(oracle, tokens, lengths).double().log_softmax(1)
                if viable is not None:
                    distributions = distributions.masked_fill(
                        _find_rejected_continuations(
                            viable, oracle, tokens, lengths, len(prompt), distributions
                        ),
                        -math.inf,
                    )
                rows, children = (distributions > -math.inf).nonzero(as_tuple=True)
                if len(prefixes) + len(rows) > most:
                    raise _too_many(oracle, len(prompt), longest, most)
                for row, token, log_prob in zip(
                    rows.tolist(), children.tolist(), distributions[rows, children].tolist(), strict=True
                ):
                    prefix = (*prefixes[places[row]], token)
                    prefixes.append(prefix)
                    parent.append(places[row])
                    log_probs.append(log_probs[places[row]] + log_prob)
                    leaf.append(_complete(oracle, prefix, longest))
            growing = [place for place in range(first, len(prefixes)) if not leaf[place]]
    return PrefixTree(
        oracle, prefixes, np.array(parent), np.array(log_probs), np.array(leaf, dtype=np.bool_), longest
    )


def _find_rejected_continuations(
    viable: VerifierLike,
    oracle: Autoregressive,
    tokens: Tensor,
    lengths: Tensor,
    start: int,
    distributions: Tensor,
) -> Tensor:
    """Return which one-token continuations (n, vocab) bool of the rows have verifier value zero."""
    rejected = torch.empty(distributions.shape, dtype=torch.bool)
    verifier = as_verifier(viable)
    for places in torch.arange(len(lengths)).split(_ROWS):
        batch = Batch(oracle, len(places), tokens.shape[1], layers=tuple(verifier.layers))
        batch.select(places[:0])
        limit = torch.full_like(lengths[places], tokens.shape[1])
        batch.add(tokens[places], lengths[places], torch.full_like(limit, start), limit)
        rows = torch.arange(len(places))
        rejected[places] = (
            CachedVerifier(verifier, batch).children(rows, distributions[places] > -math.inf) == 0
        )
    return rejected


def _complete(oracle: Autoregressive, prefix: Sequence_, longest: int, prompt: bool = False) -> bool:
    ended = oracle.eos is not None and prefix[-1:] == (oracle.eos,)
    return len(prefix) >= longest or (ended and not (prompt and oracle.prompts_go_on))


class TooManyPrefixes(InputError):
    """Error of `prefix_tree` if there are more than `max_nodes` prefixes."""


def _too_many(oracle: Autoregressive, start: int, longest: int, most: int) -> TooManyPrefixes:
    horizon, vocab = longest - start, oracle.vocab_size
    digits = (horizon + 1) * math.log10(max(vocab, 2))
    nodes = sum(vocab**h for h in range(horizon + 1)) if digits < 15 else f"about 10^{digits:.0f}"
    count = f"{nodes:,}" if isinstance(nodes, int) else nodes
    hint = (
        f"use a shorter horizon, or increase max_nodes={most} for a tree of up to {count} prefixes, or sample with "
        "generate() or `trialogue generate`"
    )
    return TooManyPrefixes("max_new_tokens", horizon, hint)
