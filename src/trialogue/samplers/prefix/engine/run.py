"""The engine: runs any sampler on any oracle, all rows as one batch, and counts what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError, whole_number
from trialogue.models.memory import require_room
from trialogue.oracles import Autoregressive, as_oracle
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY, Batch
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.order import Order
from trialogue.samplers.prefix.engine.recorder import TraceRecorder
from trialogue.samplers.prefix.engine.rules import OnError, PromptVerifiers
from trialogue.samplers.prefix.engine.running import Running, RunObserver
from trialogue.samplers.prefix.engine.whole_run import WholeRun
from trialogue.samplers.prefix.prompts import (
    Prompts,
    StopLike,
    checked_prompts,
    chosen_sample_ids,
    decoder,
    encoded,
    limits,
    prompt_tensors,
    replace_empty_prompts,
    stop_strings,
    stopping,
)
from trialogue.samplers.prefix.sampler import Sampler, runnable
from trialogue.samplers.prefix.samples import Samples
from trialogue.validation import Count, Natural, validated
from trialogue.verifiers.function import VerifierLike

STEPS_PER_TOKEN = 1000
_BYTES = 8
_COLUMNS = 16
"""Numbers that are kept of a sample besides its tokens."""


def generate(
    oracle: Autoregressive,
    prompts: Prompts | Sequence[str] | None = None,
    *,
    sampler: Sampler[Any] | None = None,
    verifier: VerifierLike | Sequence[VerifierLike | None] | None = None,
    max_new_tokens: int | None = None,
    num_samples: int = 1,
    seed: int = 0,
    sample_ids: Sequence[int] | Tensor | None = None,
    batch_size: int | None = None,
    max_queries: int | None = None,
    max_steps: int | None = None,
    stop: StopLike | None = None,
    memory: int = DEFAULT_MEMORY,
    on_error: OnError = "raise",
    token_log_probs: bool = False,
    trace: bool = False,
    progress: bool = False,
    observer: RunObserver | None = None,
) -> Samples:
    """Draw `num_samples` completions of each prompt by `sampler` (ancestral sampling by default).

    `prompts` are sequences of token ids: a list, a tensor (n, width), or right-padded tokens with their lengths;
    by default one empty prompt; or texts, where the oracle has a tokenization. An empty prompt stands for the BOS of
    a pretrained model (`Autoregressive.empty_prompt`). `verifier` may be a plain function of
    a prefix (prompt and completion as a tuple of ints); a list has one for each prompt, None where all is accepted.
    One that raises ends the run or, `on_error="reject"`, rejects what it was asked about; `errors` of the samples then
    say why, with file and line. A completion ends at the oracle's end of sequence, at its
    `max_length`, after `max_new_tokens`, or where `stop` says so: strings one of which its text contains, a function
    of its token ids, or several of both; a `verifier` of text judges what comes before such a string. A sample
    depends on `seed` and on its id (its place among the samples, unless `sample_ids` says otherwise), and on the batch
    only where the oracle's answers do: a network rounds otherwise beside other rows, which changes about one draw in a
    thousand from a vocabulary of 50,000. At most `batch_size` rows move at once (by default as many as the oracle
    suggests, or 1024), or one sample's group. A sample stops after the step that uses up `max_queries` queries, or
    after `max_steps` moves (by default 1000 per token of the longest completion).
    `memory` is the number of prefixes that are remembered, so that going back to them computes nothing: their features
    in 256 MiB at most, and, where the vocabulary is wider than those, their next-token distributions in another 96 MiB.
    About 110 bytes are kept of each prefix that was visited or judged, so that none is judged or counted twice: below a
    prompt until its last sample is finished, and of at most 16 times as many prefixes as are remembered, or 65,536.
    Beyond that half of them are forgotten, those first that nothing known lies below.
    With `token_log_probs` the samples hold them. `observer` is told of every step and of every finished sample;
    `stream` gives them to a loop.

    Raises `InputError` for a field out of range, a prompt that is too long or outside the vocabulary, a verifier
    whose answer is not one finite non-negative number per row, and an oracle that gives every token probability
    zero.
    """
    settings = RunSettings(
        sampler=sampler,
        verifier=verifier,
        max_new_tokens=max_new_tokens,
        num_samples=num_samples,
        seed=seed,
        sample_ids=sample_ids,
        batch_size=batch_size,
        max_queries=max_queries,
        max_steps=max_steps,
        stop=stop,
        memory=memory,
        on_error=on_error,
        token_log_probs=token_log_probs,
        trace=trace,
        observer=observer,
    )
    return started(oracle, prompts, settings).finish(progress)


@validated
@dataclass(frozen=True, eq=False)
class RunSettings:
    """The settings of `generate`."""

    sampler: Sampler[Any] | None = None
    verifier: VerifierLike | Sequence[VerifierLike | None] | None = None
    max_new_tokens: Count | None = None
    num_samples: Count = 1
    seed: Natural = 0
    sample_ids: Sequence[int] | Tensor | None = None
    batch_size: Count | None = None
    max_queries: Count | None = None
    max_steps: Count | None = None
    stop: StopLike | None = None
    memory: Count = DEFAULT_MEMORY
    on_error: OnError = "raise"
    token_log_probs: bool = False
    trace: bool = False
    observer: RunObserver | None = None


def started(oracle: Autoregressive, prompts: Prompts | Sequence[str] | None, run: RunSettings) -> WholeRun:
    """Return a run of `generate` before its first step."""
    oracle = as_oracle(oracle)
    tokens, lengths = replace_empty_prompts(oracle, *prompt_tensors(encoded(oracle, prompts)))
    if not len(lengths):
        raise InputError("prompts", [], "give at least one prompt, which may be empty")
    sampler = runnable(Ancestral() if run.sampler is None else run.sampler, oracle, run.verifier)
    checked_prompts(tokens, lengths, oracle.vocab_size)
    limit = limits(oracle, lengths, run.max_new_tokens)
    rows = rows_at_once(oracle, sampler, len(lengths) * run.num_samples, run.batch_size)
    capacity = _capacity(lengths, limit, run.max_steps)
    longest = capacity - int(lengths.min())
    _require_memory(run.max_new_tokens, longest, capacity, rows, run.num_samples, len(lengths))
    verifiers = None
    if run.verifier is not None:
        verifiers = PromptVerifiers.of(run.verifier, len(lengths), stop_strings(run.stop), run.on_error)
    batch = Batch(
        oracle,
        rows,
        capacity,
        layers=() if verifiers is None else verifiers.layers,
        memory=run.memory,
        stop=stopping(oracle, run.stop),
        scored=True,
    )
    order = Order(
        tokens,
        lengths,
        limit,
        chosen_sample_ids(run.sample_ids, len(lengths) * run.num_samples),
        seed=run.seed,
        max_queries=run.max_queries,
        max_steps=run.max_steps or STEPS_PER_TOKEN * int((limit - lengths).max().clamp_min(1)),
        rule=None if verifiers is None else verifiers.of_prompt,
        capacity=capacity,
        decode=decoder(oracle, run.stop),
        parsers=() if verifiers is None else verifiers.parsers,
        raised=() if verifiers is None else verifiers.raised,
        scored=run.token_log_probs,
    )
    running = Running[Order](
        Groups(sampler, batch),
        None if verifiers is None else verifiers.judge(batch),
        room=rows // sampler.rows_per_sample,
        recorder=TraceRecorder() if run.trace else None,
        observer=run.observer,
    )
    return WholeRun(running, order)


def _capacity(lengths: Tensor, limit: Tensor, max_steps: int | None) -> int:
    """The longest that a sample of prompts of `lengths` (n,) becomes: a step appends at most one token."""
    longest = int(limit.max())
    if max_steps is None or max_steps >= longest:
        return longest
    return int(torch.minimum(limit, lengths + max_steps).max())


def _require_memory(
    max_new_tokens: int | None, longest: int, capacity: int, rows: int, num_samples: int, prompts: int
) -> None:
    """Raise `InputError` if samples of `capacity` tokens, `longest` of them new, do not fit into memory."""
    # Of a row its tokens, their nodes, the nodes that are evaluated, and scores; of a sample its tokens alone.
    require_room("max_new_tokens", max_new_tokens, longest, 4 * _BYTES * rows)
    require_room("num_samples", num_samples, num_samples, _BYTES * (capacity + _COLUMNS) * prompts)


def rows_at_once(
    oracle: Autoregressive, sampler: Sampler[Any], samples: int, batch_size: int | None = None
) -> int:
    """How many rows `generate` moves at once: those of as many of the `samples` as fit, but at least of one."""
    most = oracle.batch_size if batch_size is None else whole_number("batch_size", batch_size, 1)
    return max(1, min(samples, most // sampler.rows_per_sample)) * sampler.rows_per_sample
