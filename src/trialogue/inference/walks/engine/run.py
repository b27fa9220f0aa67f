"""The engine: runs any walk on any oracle, all rows as one batch, and counts what it cost."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.errors import InputError, whole_number
from trialogue.inference.verifiers.function import VerifierLike, as_verifier
from trialogue.inference.walks.ancestral import Ancestral
from trialogue.inference.walks.batch import DEFAULT_MEMORY, Batch
from trialogue.inference.walks.engine.budget import Budget
from trialogue.inference.walks.engine.clock import Clock
from trialogue.inference.walks.engine.filed import Filed
from trialogue.inference.walks.engine.groups import Groups
from trialogue.inference.walks.engine.recorder import Recorder
from trialogue.inference.walks.engine.requests import Request, SamplesLeft
from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.prompts import (
    Prompts,
    StopLike,
    checked_prompts,
    chosen_sample_ids,
    decoder,
    encoded,
    limits,
    prompt_tensors,
    stop_strings,
    stopping,
)
from trialogue.inference.walks.samples import Samples
from trialogue.inference.walks.walk import Walk, runnable
from trialogue.oracles import Autoregressive, as_oracle

_STEPS_PER_TOKEN = 1000
_ADMIT_SHARE = 8


class Observer(Protocol):
    """Who wants to know how a run goes on while it does."""

    def moved(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Told after every step: the samples (n,) under way, and where the first row of each stands.

        `samples` are places among the run's samples; `tokens` (n, capacity), `lengths` (n,) hold prompt and completion.
        """
        ...

    def filed(self, places: Tensor, samples: Samples) -> None:
        """Told whenever samples are finished: their places (n,) among the run's samples, and the samples.

        Their `total` adds up what they cost themselves.
        """
        ...


def generate(
    oracle: Autoregressive,
    prompts: Prompts | Sequence[str] | None = None,
    *,
    walk: Walk[Any] | None = None,
    verifier: VerifierLike | None = None,
    max_new_tokens: int | None = None,
    num_samples: int = 1,
    seed: int = 0,
    sample_ids: Sequence[int] | Tensor | None = None,
    batch_size: int | None = None,
    max_queries: int | None = None,
    max_steps: int | None = None,
    stop: StopLike | None = None,
    memory: int = DEFAULT_MEMORY,
    trace: bool = False,
    progress: bool = False,
    observer: Observer | None = None,
) -> Samples:
    """Draw `num_samples` completions of each prompt by `walk` (ancestral sampling by default).

    `prompts` are sequences of token ids: a list, a tensor (n, width), or right-padded tokens with their lengths;
    by default one empty prompt; or texts, where the oracle has a tokenization. `verifier` may be a plain function of
    a prefix (prompt and completion as a tuple of ints). A completion ends at the oracle's end of sequence, at its
    `max_length`, after `max_new_tokens`, or where `stop` says so: strings one of which its text contains, a function
    of its token ids, or several of both; a `verifier` of text judges what comes before such a string. A sample
    depends on `seed` and on its id (its place among the samples, unless `sample_ids` says otherwise), and on the batch
    only where the oracle's answers do: a network rounds otherwise beside other rows, which changes about one draw in a
    thousand from a vocabulary of 50,000. At most `batch_size` rows move at once (by default as many as the oracle
    suggests, or 1024), or one sample's group. A sample stops after the step that uses up `max_queries` queries, or
    after `max_steps` moves (by default 1000 per token of the longest completion).
    `memory` is the number of prefixes that are remembered, so that going back to them computes nothing: their features
    in 256 MiB at most, and, where the vocabulary is wider than those, their next-token laws in another 96 MiB.
    About 110 bytes are kept of each prefix that was visited or judged, so that none is judged or counted twice: below a
    prompt until its last sample is finished, and of at most 16 times as many prefixes as are remembered, or 65,536.
    Beyond that half of them are forgotten, those first that nothing known lies below.
    `observer` is told of every step and of every finished sample.

    Raises `InputError` for a field out of range, a prompt that is too long or outside the vocabulary, a verifier
    whose answer is not one finite non-negative number per row, and an oracle that gives every token probability
    zero.
    """
    oracle = as_oracle(oracle)
    tokens, lengths = prompt_tensors(encoded(oracle, prompts))
    if not len(lengths):
        raise InputError("prompts", [], "give at least one prompt, which may be empty")
    walk = runnable(Ancestral() if walk is None else walk, oracle, verifier)
    num_samples = whole_number("num_samples", num_samples, 1)
    checked_prompts(tokens, lengths, oracle.vocab_size)
    limit = limits(oracle, lengths, max_new_tokens)
    ids = chosen_sample_ids(sample_ids, len(lengths) * num_samples)
    judging = None if verifier is None else as_verifier(verifier)
    if judging is not None and (strings := stop_strings(stop)):
        judging = judging.up_to(strings)
    rows = rows_at_once(oracle, walk, len(ids), batch_size)
    clock, request = Clock(), Request.repeated(tokens, lengths, limit, ids)
    batch = Batch(
        oracle,
        rows,
        request.capacity,
        layers=() if judging is None else tuple(judging.layers),
        memory=whole_number("memory", memory, 1),
        stop=stopping(oracle, stop),
        scored=True,
    )
    budget = Budget(
        None if max_queries is None else whole_number("max_queries", max_queries, 1),
        _STEPS_PER_TOKEN * int((limit - lengths).max().clamp_min(1))
        if max_steps is None
        else whole_number("max_steps", max_steps, 1),
    )
    run = _Run(
        Groups(walk, batch, request, whole_number("seed", seed, 0)),
        None if judging is None else Judge(judging, batch),
        request,
        budget,
        Filed(request, decoder(oracle, stop), None if judging is None else judging.parser),
        clock,
        room=rows // walk.rows_per_sample,
        recorder=Recorder() if trace else None,
        observer=observer,
    )
    with torch.inference_mode():
        run.finish(progress)
    # Outside of inference mode, so that the samples may be trained on and written to.
    return run.samples()


def rows_at_once(oracle: Autoregressive, walk: Walk[Any], samples: int, batch_size: int | None = None) -> int:
    """How many rows `generate` moves at once: those of as many of the `samples` as fit, but at least of one."""
    most = oracle.batch_size if batch_size is None else whole_number("batch_size", batch_size, 1)
    return max(1, min(samples, most // walk.rows_per_sample)) * walk.rows_per_sample


class _Run:
    """One call of `generate`: samples of `request` wait, at most `room` groups move, finished samples are filed."""

    def __init__(
        self,
        groups: Groups,
        judge: Judge | None,
        request: Request,
        budget: Budget,
        filed: Filed,
        clock: Clock,
        *,
        room: int,
        recorder: Recorder | None,
        observer: Observer | None,
    ) -> None:
        self._groups, self._judge, self._budget, self._filed = groups, judge, budget, filed
        self._samples, self._room, self._left = len(request.ids), room, SamplesLeft(request)
        self._recorder, self._observer, self._clock = recorder, observer, clock
        self._admitted, self._step = 0, 0

    def finish(self, progress: bool) -> None:
        """Run until every sample is filed."""
        groups, clock, batch = self._groups, self._clock, self._groups.batch
        # A walk that uses nothing of the verifier never asks for one.
        judge = cast(Judge, self._judge)
        with tqdm(total=self._samples, unit="sample", disable=not progress, leave=False) as bar:
            while self._admitted < self._samples or len(groups):
                self._admit()
                moves, state = groups.step(judge)
                if self._recorder is not None:
                    self._recorder.record(self._step, groups, moves)
                groups.apply(moves, state)
                batch.shrink()
                self._step += 1
                clock.tick(len(groups))
                if self._observer is not None:
                    first = groups.first
                    self._observer.moved(groups.sample, batch.tokens[first], batch.lengths[first])
                finished = groups.every(moves.done)
                stopped = self._budget.stopped(groups, finished, self._step)
                if bool(stopped.any()):
                    self._file(stopped, finished)
                    bar.update(int(stopped.sum()))

    def _admit(self) -> None:
        """Let samples that wait begin, where there is room for enough of them."""
        room = min(self._room - len(self._groups), self._samples - self._admitted)
        # Prompts are evaluated together: a few more idle rows cost less than many small evaluations.
        if room and not (len(self._groups) and room * _ADMIT_SHARE < self._room):
            samples = torch.arange(self._admitted, self._admitted + room)
            self._groups.admit(samples, self._step, self._clock.seconds)
            self._admitted += room

    def _file(self, stopped: Tensor, finished: Tensor) -> None:
        """File the groups that are `stopped` (groups,) bool, and forget the prompts that they were the last of."""
        groups = self._groups
        places = self._filed.file(
            groups,
            stopped.nonzero()[:, 0],
            finished,
            self._judge,
            seconds=self._clock.seconds,
            out_of_steps=self._budget.out_of_steps(groups.admitted, self._step),
        )
        if self._observer is not None:
            with torch.inference_mode(False):
                self._observer.filed(places.clone(), self._filed.samples(places))
        groups.keep((~stopped).nonzero()[:, 0])
        groups.batch.forget(self._left.file(places))

    def samples(self) -> Samples:
        """The samples that were filed, with the cost and the trace of the whole run."""
        samples = self._filed.samples(torch.arange(self._samples))
        passes = self._groups.batch.meter.passes
        total = samples.total._replace(forward_passes=passes, seconds=self._clock.elapsed)
        return replace(samples, total=total, trace=None if self._recorder is None else self._recorder.trace())
