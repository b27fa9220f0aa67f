"""The engine: runs any walk on any oracle, all rows as one batch, and counts what it cost."""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, cast

import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.errors import InputError, whole_number
from trialogue.inference.verifiers.function import as_verifier
from trialogue.inference.verifiers.stop_strings import judging_up_to
from trialogue.inference.walks.ancestral import Ancestral
from trialogue.inference.walks.batch import DEFAULT_MEMORY, Batch, Stop, suggested_rows
from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.knowledge import Meter
from trialogue.inference.walks.moves import Moves
from trialogue.inference.walks.prompts import (
    Prompts,
    checked_prompts,
    chosen_sample_ids,
    decoder,
    encoded,
    limits,
    prompt_tensors,
    stopping,
)
from trialogue.inference.walks.samples import Cost, Samples, Trace
from trialogue.inference.walks.walk import Walk, join, runnable, take
from trialogue.oracles import Autoregressive, StateT, Verifier
from trialogue.randomness import Streams

VerifierLike = Verifier | Callable[[tuple[int, ...]], float | bool]

_STEPS_PER_TOKEN = 1000
_ADMIT_SHARE = 8
_STOPPED = ("", "failed", "max_steps", "max_queries")


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
    stop: str | Sequence[str] | Stop | None = None,
    memory: int = DEFAULT_MEMORY,
    trace: bool = False,
    progress: bool = False,
    observer: Observer | None = None,
) -> Samples:
    """Draw `num_samples` completions of each prompt by `walk` (ancestral sampling by default).

    `prompts` are sequences of token ids: a list, a tensor (n, width), or right-padded tokens with their lengths;
    by default one empty prompt; or texts, where the oracle has a tokenization. `verifier` may be a plain function of
    a prefix (prompt and completion as a tuple of ints). A completion ends at the oracle's end of sequence, at its
    `max_length`, after `max_new_tokens`, or where `stop` says so: strings one of which its text contains, or a
    function of its token ids; a `verifier` of text judges what comes before such a string. A sample depends on `seed`
    and on its id (its place among the samples, unless `sample_ids` says otherwise), and on the batch only where the
    oracle's answers do: a network rounds otherwise beside other rows, which changes about one draw in a thousand from
    a vocabulary of 50,000. At most `batch_size` rows move at once (by default as many as the oracle suggests, or
    1024), or one sample's group. A sample stops after the step that uses up `max_queries` queries, or after
    `max_steps` moves (by default 1000 per token of the longest completion).
    `memory` is the number of prefixes that are remembered, so that going back to them computes nothing: their features
    in 256 MiB at most, and, where the vocabulary is wider than those, their next-token laws in another 96 MiB.
    Whatever it is, about 110 bytes are kept of each prefix that was visited, so that none is judged or counted twice:
    below a prompt until its last sample is finished.
    `observer` is told of every step and of every finished sample.

    Raises `InputError` for a field out of range, a prompt that is too long or outside the vocabulary, a verifier
    whose answer is not one finite non-negative number per row, and an oracle that gives every token probability
    zero.
    """
    tokens, lengths = prompt_tensors(encoded(oracle, prompts))
    if not len(lengths):
        raise InputError("prompts", [], "give at least one prompt, which may be empty")
    walk = runnable(Ancestral() if walk is None else walk, oracle, verifier)
    num_samples = whole_number("num_samples", num_samples, 1)
    checked_prompts(tokens, lengths, oracle.vocab_size)
    limit = limits(oracle, lengths, max_new_tokens)
    ids = chosen_sample_ids(sample_ids, len(lengths) * num_samples)
    judge = None if verifier is None else as_verifier(verifier)
    if judge is not None and stop is not None and not callable(stop):
        judge = judging_up_to(stop, judge)
    run = _Run(
        oracle,
        walk,
        judge,
        torch.arange(len(lengths)).repeat_interleave(num_samples),
        tokens.repeat_interleave(num_samples, 0),
        lengths.repeat_interleave(num_samples),
        limit.repeat_interleave(num_samples),
        ids,
        seed=whole_number("seed", seed, 0),
        rows=rows_at_once(oracle, walk, len(ids), batch_size),
        max_queries=None if max_queries is None else whole_number("max_queries", max_queries, 1),
        max_steps=_STEPS_PER_TOKEN * int((limit - lengths).max().clamp_min(1))
        if max_steps is None
        else whole_number("max_steps", max_steps, 1),
        memory=whole_number("memory", memory, 1),
        stop=stopping(oracle, stop),
        decode=decoder(oracle, stop),
        trace=trace,
        observer=observer,
    )
    with torch.inference_mode():
        run.finish(progress)
    # Outside of inference mode, so that the samples may be trained on and written to.
    return run.samples()


def rows_at_once(oracle: Autoregressive, walk: Walk[Any], samples: int, batch_size: int | None = None) -> int:
    """How many rows `generate` moves at once: those of as many of the `samples` as fit, but at least of one."""
    most = suggested_rows(oracle) if batch_size is None else whole_number("batch_size", batch_size, 1)
    return max(1, min(samples, most // walk.rows_per_sample)) * walk.rows_per_sample


class _Run(Generic[StateT]):
    """One call of `generate`: samples wait in a queue, groups of rows move, finished samples are filed."""

    def __init__(
        self,
        oracle: Autoregressive,
        walk: Walk[StateT],
        verifier: Verifier | None,
        prompt: Tensor,
        prompts: Tensor,
        lengths: Tensor,
        limit: Tensor,
        ids: Tensor,
        *,
        seed: int,
        rows: int,
        max_queries: int | None,
        max_steps: int,
        memory: int,
        stop: Stop | None,
        decode: Callable[[Sequence[int]], str] | None,
        trace: bool,
        observer: Observer | None,
    ) -> None:
        self._began = time.perf_counter()
        self._walk, self._members, self._seed = walk, walk.rows_per_sample, seed
        self._prompt, self._prompts, self._prompt_lengths, self._limit = prompt, prompts, lengths, limit
        self._ids, self._decode, self._observer = ids, decode, observer
        self._max_queries, self._max_steps = max_queries, max_steps
        samples = len(ids)
        self._groups = rows // self._members
        layers = () if verifier is None else tuple(verifier.layers)
        capacity = int(limit.max())
        self._batch = Batch(oracle, rows, capacity, layers=layers, memory=memory, stop=stop, scored=True)
        self._verified = verifier is not None
        self._judge = Judge(verifier, self._batch) if verifier is not None else cast(Judge, None)
        self._state = walk.init(self._batch)
        self._streams = Streams(seed, torch.zeros(0, dtype=torch.int64))
        self._sample = torch.zeros(0, dtype=torch.int64)  # of each group, the place of its sample
        self._admitted, self._first_admitted, self._now = self._sample, 0, 0  # in steps of this run
        # Seconds that a sample has been charged are what one sample under way since the beginning would have been.
        self._charged, self._clock, self._since = torch.zeros(0, dtype=torch.float64), 0.0, self._began
        self._waiting = 0
        # Samples of the same prompt share a tree, which can go when the last of them is filed.
        own = {index: place for place, index in enumerate(prompt.tolist())}
        self._roots = {
            index: tuple(prompts[place, : lengths[place]].tolist()) for index, place in own.items()
        }
        self._left = Counter(self._roots[index] for index in prompt.tolist())
        self._trace: list[tuple[Tensor, ...]] | None = [] if trace else None
        self._tokens = torch.zeros(samples, capacity, dtype=torch.int64)
        self._lengths, self._stopped = torch.zeros_like(lengths), torch.zeros_like(lengths)
        self._accepted = torch.zeros(samples, dtype=torch.bool)
        self._log_weight, self._log_prob, self._seconds = torch.zeros(3, samples, dtype=torch.float64).unbind(
            0
        )
        self._counts = {name: torch.zeros_like(lengths) for name in Meter.counts}

    def finish(self, progress: bool) -> None:
        """Run until every sample is filed."""
        members = self._members
        with tqdm(total=len(self._ids), unit="sample", disable=not progress, leave=False) as bar:
            while self._waiting < self._ids.numel() or self._sample.numel():
                self._admit()
                moves, state = self._walk.step(self._batch, self._state, self._judge, self._streams.choose)
                if self._trace is not None:
                    self._trace.append(self._moved(moves))
                self._batch.apply(moves)
                self._state = take(state, moves.source) if members > 1 else state
                self._now += 1
                now = time.perf_counter()
                self._clock += (now - self._since) / self._sample.numel()
                self._since = now
                if self._observer is not None:
                    first = torch.arange(0, self._sample.numel() * members, members)
                    self._observer.moved(self._sample, self._batch.tokens[first], self._batch.lengths[first])
                finished = moves.done if members == 1 else moves.done.view(-1, members).all(1)
                stopped = self._out_of_budget(finished)
                if bool(stopped.any()):
                    self._file(stopped.nonzero()[:, 0], finished)
                    bar.update(int(stopped.sum()))
                    over = self._sample[stopped]
                    self._keep((~stopped).nonzero()[:, 0])
                    self._forget(over)

    def _out_of_budget(self, finished: Tensor) -> Tensor:
        """Which groups stop here: those that have finished, and those that have used up their budget."""
        if self._now - self._first_admitted >= self._max_steps:
            finished = finished | (self._now - self._admitted >= self._max_steps)
        if self._max_queries is not None:
            queries = self._batch.meter.queries.view(-1, self._members).sum(1)
            # A group whose rows are all complete has but to choose among them, which takes no more queries.
            asking = ~self._batch.complete.view(-1, self._members).all(1) | (self._members == 1)
            finished = finished | ((queries >= self._max_queries) & asking)
        return finished

    def _admit(self) -> None:
        moving = self._sample.numel()
        room = min(self._groups - moving, self._ids.numel() - self._waiting)
        # Prompts are evaluated together: a few more idle rows cost less than many small evaluations.
        if not room or (moving and room * _ADMIT_SHARE < self._groups):
            return
        new = torch.arange(self._waiting, self._waiting + room)
        self._waiting += room
        rows = new.repeat_interleave(self._members)
        before = len(self._batch.lengths)
        tokens = torch.zeros(len(rows), self._tokens.shape[1], dtype=torch.int64)
        width = min(self._prompts.shape[1], tokens.shape[1])
        tokens[:, :width] = self._prompts[rows, :width]
        lengths = self._prompt_lengths[rows]
        tokens *= torch.arange(tokens.shape[1]) < lengths[:, None]
        self._batch.add(tokens, lengths, lengths, self._limit[rows])
        fresh = take(self._walk.init(self._batch), torch.arange(before, before + len(rows)))
        self._state = join(self._state, fresh)
        member = torch.arange(self._members).repeat(room)
        self._streams.extend(Streams(self._seed, self._ids[rows] * self._members + member))
        self._sample = torch.cat((self._sample, new))
        self._admitted = torch.cat((self._admitted, torch.full_like(new, self._now)))
        self._charged = torch.cat((self._charged, torch.full((room,), self._clock, dtype=torch.float64)))
        self._first_admitted = int(self._admitted.min())

    def _keep(self, groups: Tensor) -> None:
        rows = (groups[:, None] * self._members + torch.arange(self._members)).flatten()
        self._batch.select(rows)
        self._state = take(self._state, rows)
        self._streams.select(rows)
        self._sample, self._admitted = self._sample[groups], self._admitted[groups]
        self._charged = self._charged[groups]
        self._first_admitted = int(self._admitted.min()) if len(groups) else self._now

    def _forget(self, samples: Tensor) -> None:
        """Forget the prompts that `samples` (n,), which were filed, were the last of."""
        texts = [self._roots[index] for index in self._prompt[samples].tolist()]
        self._left.subtract(texts)
        self._batch.forget({text for text in texts if not self._left[text]})

    def _file(self, groups: Tensor, finished: Tensor) -> None:
        batch, members = self._batch, self._members
        samples, first = self._sample[groups], groups * members
        complete = batch.complete[first]
        log_weight = getattr(self._state, "log_weight", None)
        if log_weight is not None:
            self._log_weight[samples] = log_weight[first]
        # A group that was stopped has not chosen its output yet.
        accepted = complete & (finished[groups] | (members == 1)) & (self._log_weight[samples] > -math.inf)
        judged = accepted.nonzero()[:, 0]
        if self._verified and len(judged):
            accepted[judged] = self._judge.values(first[judged]) > 0
        self._tokens[samples], self._lengths[samples] = batch.tokens[first], batch.lengths[first]
        self._tokens[samples] *= torch.arange(self._tokens.shape[1]) < self._lengths[samples, None]
        self._accepted[samples] = accepted
        for name, counts in self._counts.items():
            counts[samples] = getattr(batch.meter, name).view(-1, members).sum(1)[groups]
        self._log_prob[samples] = batch.log_prob[first]
        self._seconds[samples] = self._clock - self._charged[groups]
        out_of_steps = self._now - self._admitted[groups] >= self._max_steps
        bounded = torch.where(accepted, 0, torch.where(out_of_steps, 2, 3))
        self._stopped[samples] = torch.where(finished[groups], torch.where(complete, 0, 1), bounded)
        if self._observer is not None:
            with torch.inference_mode(False):
                self._observer.filed(samples.clone(), self._filed(samples))

    def _moved(self, moves: Moves) -> tuple[Tensor, ...]:
        lengths, members = self._batch.lengths, self._members
        elsewhere = moves.source != torch.arange(len(lengths))
        rows = ((moves.token >= 0) | (moves.length != lengths) | elsewhere).nonzero()[:, 0]
        return (
            torch.full_like(rows, self._now),
            self._sample[rows // members],
            rows % members,
            lengths[rows],
            moves.source[rows] % members,
            moves.length[rows],
            moves.token[rows],
        )

    def samples(self) -> Samples:
        """Return what was filed."""
        return self._filed(torch.arange(len(self._ids)), whole=True)

    def _filed(self, places: Tensor, whole: bool = False) -> Samples:
        """The samples at `places`; their cost in all is the run's for the `whole` of it, else what adds up."""
        counts = {name: count[places].clone() for name, count in self._counts.items()}
        seconds = self._seconds[places].clone()
        total = Cost(
            **{name: int(count.sum()) for name, count in counts.items()}, seconds=float(seconds.sum())
        )
        if whole:
            passes = self._batch.meter.passes
            total = total._replace(forward_passes=passes, seconds=time.perf_counter() - self._began)
        return Samples(
            tokens=self._tokens[places].clone(),
            lengths=self._lengths[places].clone(),
            prompt=self._prompt[places].clone(),
            prompt_lengths=self._prompt_lengths[places].clone(),
            accepted=self._accepted[places].clone(),
            log_prob=self._log_prob[places].clone(),
            log_weight=self._log_weight[places].clone(),
            seconds=seconds,
            stopped=[_STOPPED[reason] for reason in self._stopped[places].tolist()],
            total=total,
            trace=Trace(*(torch.cat(column) for column in zip(*self._trace, strict=True)))
            if whole and self._trace is not None
            else None,
            decode=self._decode,
            **counts,
        )
