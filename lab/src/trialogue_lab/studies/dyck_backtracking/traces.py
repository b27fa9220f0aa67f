"""What the trace of a run tells: where samples went back, and the errors that are left."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from trialogue.data import Dyck, DyckError
from trialogue.models.transformer import Transformer
from trialogue.oracles import next_log_probs, padded
from trialogue.samplers import Samples, Trace
from trialogue_lab.studies.dyck_backtracking.models import end_of_sequence

BRACKETS = "[]()"


def rejected_prefixes(samples: Samples, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Every prefix at which a sample went back: tokens (n, capacity), lengths (n,).

    Replays the trace from the prompts `tokens` (samples, width).
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
    return padded(rejected, current.shape[1])


def remaining_errors(law: Dyck, model: Transformer, samples: Samples, quota: int) -> Iterator[dict[str, Any]]:
    """One row per error that is left: its kind, its probability, and the quota that was left."""
    assert samples.trace is not None
    position, kind = law.errors(samples.tokens, samples.lengths, end_of_sequence(law))
    rows = ((position >= 0) & (position < samples.lengths)).nonzero()[:, 0]
    backtracks = torch.bincount(_went_back(samples.trace), minlength=len(samples.lengths))
    stop = position[rows]
    probs = next_log_probs(model, samples.tokens[rows], stop).double().exp()
    tokens = samples.tokens[rows, stop]
    best = probs.max(1)
    for index, row in enumerate(rows.tolist()):
        yield {
            "error": DyckError(int(kind[row])).name,
            "prefix": _text(samples.tokens[row, : int(stop[index])].tolist()),
            "token": _text([int(tokens[index])]),
            "token_prob": float(probs[index, tokens[index]]),
            "best": _text([int(best.indices[index])]),
            "best_prob": float(best.values[index]),
            "quota_left": quota - int(backtracks[row]),
        }


def _went_back(trace: Trace) -> Tensor:
    """The sample (n,) of every backtrack."""
    return trace.sample[trace.kept < trace.length]


def _text(tokens: Sequence[int]) -> str:
    return "".join(BRACKETS[token] if token < len(BRACKETS) else "⟨eos⟩" for token in tokens)
