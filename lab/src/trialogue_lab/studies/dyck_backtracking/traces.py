"""Analysis of the recorded steps (trace) of a sampler: its rejected prefixes and its errors."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from trialogue.data import Dyck, DyckError
from trialogue.models.networks.transformer import Transformer
from trialogue.oracles import next_log_probs, pad_sequences
from trialogue.samplers import Samples

BRACKETS = "[]()"


def find_rejected_prefixes(samples: Samples, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return all prefixes at which a sampler with backtracking erased tokens.

    Args:
        samples: Samples with their trace, which records the steps of the sampler.
        tokens: Token ids (samples, width) of the prompts.

    Returns:
        Token ids (n, capacity) and lengths (n,) of the n prefixes.
    """
    assert samples.trace is not None
    trace = samples.trace
    current = torch.zeros_like(samples.tokens)
    current[:, : tokens.shape[1]] = tokens[:, : current.shape[1]]
    rejected: list[list[int]] = []
    columns = (trace.sample, trace.length, trace.kept, trace.token)
    for sample, length, kept, token in zip(*(column.tolist() for column in columns), strict=True):
        if kept < length:
            rejected.append(current[sample, :length].tolist())
        if token >= 0:
            current[sample, kept] = token
    return pad_sequences(rejected, current.shape[1])


def find_remaining_errors(
    distribution: Dyck, model: Transformer, samples: Samples, quota: int
) -> Iterator[dict[str, Any]]:
    """Yield one row per sample of backtracking that contains an error.

    Args:
        distribution: Distribution whose strings are correct.
        model: The language model that was sampled.
        samples: Samples with their trace, which records the steps of the sampler.
        quota: Number of backtracks that were allowed per sample.

    Yields:
        Row about the first error of a sample, with these entries:

        - "error": kind of error.
        - "prefix": text before the error.
        - "token" and "token_prob": wrong token and its probability.
        - "best" and "best_prob": most probable token and its probability.
        - "quota_left": number of unused backtracks.
    """
    assert samples.trace is not None
    position, kind = distribution.errors(samples.tokens, samples.lengths, distribution.vocab_size)
    rows = ((position >= 0) & (position < samples.lengths)).nonzero()[:, 0]
    backtracked = samples.trace.sample[samples.trace.kept < samples.trace.length]
    backtracks = torch.bincount(backtracked, minlength=len(samples.lengths))
    stop = position[rows]
    probs = next_log_probs(model, samples.tokens[rows], stop).double().exp()
    tokens = samples.tokens[rows, stop]
    best = probs.max(1)
    for index, row in enumerate(rows.tolist()):
        yield {
            "error": DyckError(int(kind[row])).name,
            "prefix": _format_tokens(samples.tokens[row, : int(stop[index])].tolist()),
            "token": _format_tokens([int(tokens[index])]),
            "token_prob": float(probs[index, tokens[index]]),
            "best": _format_tokens([int(best.indices[index])]),
            "best_prob": float(best.values[index]),
            "quota_left": quota - int(backtracks[row]),
        }


def _format_tokens(tokens: Sequence[int]) -> str:
    return "".join(BRACKETS[token] if token < len(BRACKETS) else "⟨eos⟩" for token in tokens)
