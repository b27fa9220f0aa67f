"""A run that takes requests while it goes on: rows of different prompts, rules and temperatures move as one batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import torch

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Verifier, as_oracle
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY, Batch, Stop
from trialogue.samplers.prefix.contract.judge import JudgeOfRules
from trialogue.samplers.prefix.contract.sampler import Sampler, require_verifier
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.order import Order
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
    """What decides the samples of a request, beside its prompt and its seed: fields are arguments of `generate`.

    Temperature, `top_p`, `top_k` and `min_p` truncate the oracle as `truncated` does. Requests on equal terms, with the
    same verifier, share what is known of the prompts that they have in common.
    """

    verifier: VerifierLike | None = None
    max_new_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    stop: tuple[str, ...] = ()

    def truncated(self, oracle: Autoregressive) -> Truncated:
        """The `oracle`, truncated so."""
        return Truncated(oracle, self.temperature, self.top_p, self.top_k, self.min_p)


@dataclass(eq=False)
class _Rule:
    """The verifier number `number` of the batch, with the number of submissions that use it."""

    number: int
    verifier: Verifier
    raised: Raised | None
    users: int = 0


class Submission(Order):
    """Samples that an open run draws together, on `terms`; `OpenRun.submit` makes them."""

    def __init__(self, terms: Terms, *order: Any, **settings: Any) -> None:
        super().__init__(*order, **settings)
        self.terms = terms


class FinishedSamples(NamedTuple):
    """Finished samples of one submission: their `index` is their place among its samples."""

    submission: Submission
    samples: Samples


class Growing(NamedTuple):
    """The completion so far of the sample number `place` of a submission."""

    submission: Submission
    place: int
    completion: list[int]


class OpenRun:
    """Draws samples by `sampler` (ancestral sampling by default) for whoever asks while it goes on.

    `submit` lets samples of a prompt wait, `step` lets those begin for which there is room and takes one step with all
    that are under way, `withdraw` ends a submission early. At most `batch_size` rows move at once (by default as many
    as the oracle suggests), of up to `capacity` tokens each (by default the oracle's `max_length`). A sample depends on
    its own prompt, terms and seed as in `generate`, and not on what else there is, but for the oracle's rounding.
    `layers` are those whose hidden states verifiers read; the other settings are those of `generate`.

    Calls must not overlap. Raises `InputError` as `generate` does; what a step raises leaves the run unusable.
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
            hint = "it is truncated already: give the oracle itself, and what truncates it with each request"
            raise InputError("oracle", type(oracle).__name__, hint)
        if capacity is None and oracle.max_length is None:
            raise InputError("capacity", None, "give a number: the oracle has no longest sequence")
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
    ) -> Submission:
        """Ask for `num_samples` completions of `prompt`, token ids, on `terms`; they are drawn as `step` is called."""
        terms = Terms() if terms is None else terms
        require_verifier(self.sampler, terms.verifier)
        tokens, lengths = replace_empty_prompts(self._oracle, *prompt_tensors([prompt]))
        checked_prompts(tokens, lengths, self._oracle.vocab_size)
        asked = terms.max_new_tokens
        limit = limits(self._oracle, lengths, self.capacity if asked is None else asked)
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
        """The rule of the batch that stands for `terms`; a new one where nobody asks for samples on these."""
        if terms not in self._rules:
            number, truncation = next(self._numbers), terms.truncated(self._oracle)
            stop = stopping(self._oracle, list(terms.stop)) if terms.stop else None
            raised = Raised() if self._on_error == "reject" else None
            verifier = judging(terms.verifier, terms.stop, raised)
            if not set(verifier.layers) <= set(self._layers):
                hint = f"it reads hidden states of layers that the run does not keep: open it with {verifier.layers}"
                raise InputError("layers", self._layers, hint)
            self._judge.add(number, verifier)
            self._truncations[number] = truncation
            if stop is not None:
                self._stops[number] = stop
            self._rules[terms] = _Rule(number, verifier, raised)
        return self._rules[terms]

    def withdraw(self, submission: Submission) -> None:
        """Draw no more of `submission`: its rows are free. Nothing happens to one that is finished."""
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
        """Whether there are samples to be drawn."""
        return self._running.busy

    @property
    def passes(self) -> int:
        """How often the oracle has evaluated rows since the run was opened."""
        return self._running.total[0]

    def rest(self) -> None:
        """Charge the samples under way nothing for the time since the last step."""
        self._running.rest()

    def step(self) -> list[FinishedSamples]:
        """Take one step with all samples under way; return those that it finished."""
        finished = []
        for submission, places in self._running.step():
            finished.append(FinishedSamples(submission, submission.samples(places.clone())))
            if not submission.left:
                self._end(submission)
        return finished

    def growing(self) -> Iterator[Growing]:
        """Yield the completions so far of the samples under way."""
        columns = (column.tolist() for column in self._running.under_way())
        for place, tokens, length in zip(*columns, strict=True):
            submission = self._running.order_of(place)
            start, own = int(submission.lengths[0]), place - submission.earliest
            yield Growing(submission, own, tokens[start:length])
