"""A run that accepts requests at any time and moves rows with different prompts and settings as one batch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple, cast

import torch

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Verifier, as_oracle
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY, Batch, Stop
from trialogue.samplers.prefix.contract.judge import JudgeOfRules
from trialogue.samplers.prefix.contract.sampler import Sampler, require_verifier
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.order import Order
from trialogue.samplers.prefix.engine.rounds import Rounds, SharedState
from trialogue.samplers.prefix.engine.rules import OnError, judging
from trialogue.samplers.prefix.engine.run import STEPS_PER_TOKEN, rows_at_once
from trialogue.samplers.prefix.engine.running import Running
from trialogue.samplers.prefix.output.samples import Samples
from trialogue.samplers.prefix.prompts import (
    checked_prompts,
    chosen_sample_ids,
    decoder,
    limits,
    prompt_tensors,
    replace_empty_prompts,
    stopping,
)
from trialogue.samplers.truncation import Truncated
from trialogue.validation import Count, Natural, validated
from trialogue.verifiers.functions.function import VerifierLike
from trialogue.verifiers.functions.tolerant import Raised


@dataclass(frozen=True)
class Terms:
    """Settings of a request other than its prompt and seed. The fields are arguments of `generate`.

    Requests with equal terms and the same verifier share cached results of common prompts.

    Args:
        verifier: The verifier (default: none).
        max_new_tokens: Maximum length of a completion (default: up to the capacity of the run).
        temperature: Sampling temperature (default: 1).
        top_p: Probability mass of the most probable tokens to keep (default: 1, all tokens).
        top_k: Number of most probable tokens to keep (default: all).
        min_p: Smallest probability to keep, relative to the most probable token (default: 0).
        stop: Strings that end a completion (default: none).
    """

    verifier: VerifierLike | None = None
    max_new_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    stop: tuple[str, ...] = ()

    def truncated(self, oracle: Autoregressive) -> Truncated:
        """Return `oracle` with the temperature, top-k, top-p and min-p of these settings."""
        return Truncated(oracle, self.temperature, self.top_p, self.top_k, self.min_p)


@dataclass(eq=False)
class _Rule:
    """One combination of verifier and settings in use, with the number of submissions that use it."""

    number: int
    verifier: Verifier
    raised: Raised | None
    users: int = 0


class Submission(Order):
    """One request to an `OpenRun`: a prompt, its settings, and its samples. Created by `OpenRun.submit`.

    Args:
        terms: Settings of the request.
        *order: Positional arguments of `Order`.
        **settings: Keyword arguments of `Order`.
    """

    def __init__(self, terms: Terms, *order: Any, **settings: Any) -> None:
        super().__init__(*order, **settings)
        self.terms = terms

    @property
    def has_raised(self) -> bool:
        """Whether the verifier has raised an error in this or another unfinished submission with the same settings."""
        return any(cast(Mapping[int, Raised], self.raised).values())


class FinishedSamples(NamedTuple):
    """Samples of one submission (request) that finished in one step.

    Attributes:
        submission: The submission.
        samples: The samples. Their `index` is the index in the submission.
    """

    submission: Submission
    samples: Samples


class Growing(NamedTuple):
    """An unfinished sample and the tokens generated for it so far.

    Attributes:
        submission: The submission (request) of the sample.
        place: Index of the sample in the submission.
        completion: Token ids of the completion so far.
    """

    submission: Submission
    place: int
    completion: list[int]


class OpenRun:
    """Run that accepts requests between its steps and moves the rows (sequences) of all requests as one batch.

    A submission is one request, with a prompt and its settings. `submit` queues its samples. `step` admits queued
    samples if there is room and moves all samples in progress by one step of the sampler. `withdraw` cancels a
    submission. As in `generate`, a sample is determined by its prompt, terms and seed, and other samples affect it only
    through the oracle's rounding.

    Calls must not overlap. After an exception in `step` the run is unusable.

    Args:
        oracle: The model to sample from, without truncation.
        sampler: The sampler (default: ancestral sampling).
        batch_size: Largest number of rows that move at once (default: chosen by the oracle).
        capacity: Largest number of tokens of a row (default: the oracle's `max_length`).
        layers: Blocks of the model whose hidden states verifiers may read (default: none).
        memory: Number of prefixes whose features (vectors from which distributions are computed) are cached, as in
            `generate`.
        on_error: What to do if a verifier or target raises, as in `generate`: "raise" ends the run, "reject" rejects
            the prefix.

    Raises:
        InputError: If the oracle is truncated, or neither `capacity` nor the oracle's `max_length` is given.
    """

    @validated
    def __init__(
        self,
        oracle: Autoregressive,
        sampler: Sampler[Any] | None = None,
        *,
        batch_size: Count | None = None,
        capacity: Count | None = None,
        layers: tuple[int, ...] = (),
        memory: Count = DEFAULT_MEMORY,
        on_error: OnError = "raise",
    ) -> None:
        self._oracle = oracle = as_oracle(oracle)
        if oracle.cuts:
            hint = "give the oracle without truncation, and set the truncation in the terms of each request"
            raise InputError("oracle", type(oracle).__name__, hint)
        if capacity is None and oracle.max_length is None:
            raise InputError("capacity", None, "give a number, because the oracle has no `max_length`")
        self.capacity = min(length for length in (capacity, oracle.max_length) if length is not None)
        self.sampler = (Ancestral() if sampler is None else sampler).in_tokens(oracle.tokenization)
        self._layers, self._on_error = layers, on_error
        self._stops, self._truncations = dict[int, Stop](), dict[int, Truncated]()
        most = oracle.batch_size if batch_size is None else batch_size
        rows = rows_at_once(oracle, self.sampler, most, most)
        batch = Batch(
            oracle,
            rows,
            self.capacity,
            layers=layers,
            memory=memory,
            stop=self._stops,
            scored=True,
            truncations=self._truncations,
        )
        self._judge = JudgeOfRules({}, batch)
        self._running = Running[Submission](
            Groups(self.sampler, batch), self._judge, room=rows // self.sampler.rows_per_sample
        )
        self._rules, self._numbers = dict[Terms, _Rule](), count()

    @validated
    def submit(
        self,
        prompt: Sequence[int],
        terms: Terms | None = None,
        *,
        num_samples: Count = 1,
        seed: Natural = 0,
        sample_ids: Sequence[int] | None = None,
        max_queries: Count | None = None,
        max_steps: Count | None = None,
        token_log_probs: bool = False,
        shared: SharedState | None = None,
    ) -> Submission:
        """Queue completions of a prompt. They are drawn by calls of `step`.

        Args:
            prompt: Token ids.
            terms: Verifier, truncation and stop strings (default: `Terms()`).
            num_samples: Number of completions (default: 1).
            seed: Seed of the random streams (default: 0).
            sample_ids: Keys of the random streams, one for each sample (default: index of the sample).
            max_queries: Stop a sample after the step in which it reaches this number of model calls.
            max_steps: Stop a sample after this many moves (default: 1000 per token of the longest completion).
            token_log_probs: Store the log-probability of each token (default: False).
            shared: Object that passes states between the samples, and possibly to other submissions (default: new
                rounds of `round_size` samples).

        Returns:
            The submission, which identifies the samples in `step`, `growing` and `withdraw`.

        Raises:
            InputError: If an argument is out of range, the prompt is longer than the capacity, or the verifier reads
                hidden states that the run does not store.
        """
        terms = Terms() if terms is None else terms
        require_verifier(self.sampler, terms.verifier)
        tokens, lengths = replace_empty_prompts(self._oracle, *prompt_tensors([prompt]))
        checked_prompts(tokens, lengths, self._oracle.vocab_size)
        max_new_tokens = terms.max_new_tokens
        limit = limits(self._oracle, lengths, self.capacity if max_new_tokens is None else max_new_tokens)
        limit = limit.clamp_max(self.capacity)
        length = int(lengths[0])
        if length > self.capacity:
            raise InputError("prompt", length, f"use a prompt of at most {self.capacity} tokens")
        ids = chosen_sample_ids(sample_ids, num_samples)
        decode = decoder(self._oracle, list(terms.stop) or None)
        rule = self._rule(terms)
        submission = Submission(
            terms,
            tokens,
            lengths,
            limit,
            ids,
            seed=seed,
            max_queries=max_queries,
            max_steps=max_steps or STEPS_PER_TOKEN * max(1, int(limit[0]) - length),
            rounds=partial(Rounds, self.sampler, shared=None if shared is None else [shared]),
            rule=torch.tensor([rule.number]),
            decode=decode,
            parsers=() if rule.verifier.parser is None else [rule.verifier.parser],
            raised={} if rule.raised is None else {rule.number: rule.raised},
            scored=token_log_probs,
            judged=terms.verifier is not None,
        )
        rule.users += 1
        self._running.submit(submission)
        return submission

    def _rule(self, terms: Terms) -> _Rule:
        """Return the rule for `terms`, adding a new one if no unfinished submission has these terms."""
        if terms not in self._rules:
            number, truncation = next(self._numbers), terms.truncated(self._oracle)
            stop = stopping(self._oracle, list(terms.stop)) if terms.stop else None
            raised = Raised() if self._on_error == "reject" else None
            verifier = judging(terms.verifier, terms.stop, raised)
            if not set(verifier.layers) <= set(self._layers):
                hint = f"create the run with layers={verifier.layers}, which the verifier reads"
                raise InputError("layers", self._layers, hint)
            self._judge.add(number, verifier)
            self._truncations[number] = truncation
            if stop is not None:
                self._stops[number] = stop
            self._rules[terms] = _Rule(number, verifier, raised)
        return self._rules[terms]

    def withdraw(self, submission: Submission) -> None:
        """Cancel the unfinished samples of a submission and free their rows.

        Args:
            submission: Result of `submit`. If all of its samples are finished, nothing happens.
        """
        if submission in self._running.orders:
            self._running.withdraw(submission)
            self._end(submission)

    def _end(self, submission: Submission) -> None:
        rule = self._rules[submission.terms]
        rule.users -= 1
        if not rule.users:
            del self._rules[submission.terms], self._truncations[rule.number]
            self._stops.pop(rule.number, None)
            self._judge.remove(rule.number)

    @property
    def busy(self) -> bool:
        """Whether there are unfinished samples."""
        return self._running.busy

    @property
    def passes(self) -> int:
        """Number of forward passes since the run was created."""
        return self._running.total[0]

    def rest(self) -> None:
        """Exclude the time since the last step, in which the run was idle, from the `seconds` of samples."""
        self._running.rest()

    def step(self) -> list[FinishedSamples]:
        """Take one step of the sampler with all samples in progress, after admitting queued samples if there is room.

        Returns:
            The samples that finished in this step, grouped by submission.
        """
        finished = []
        for submission, places in self._running.step():
            finished.append(FinishedSamples(submission, submission.samples(places.clone())))
            if not submission.left:
                self._end(submission)
        return finished

    def growing(self) -> Iterator[Growing]:
        """Yield the completion so far of each sample in progress."""
        columns = (column.tolist() for column in self._running.under_way())
        for place, tokens, length in zip(*columns, strict=True):
            submission = self._running.order_of(place)
            start, own = int(submission.lengths[0]), place - submission.earliest
            yield Growing(submission, own, tokens[start:length])
