"""Class `OpenRun`, a run of a sampler that accepts new requests at any time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple, cast

import torch

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Verifier, as_oracle
from trialogue.samplers.penalties import Penalties
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY, Batch, Stop
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifierPerRow
from trialogue.samplers.prefix.contract.sampler import Sampler, require_verifier
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.prompt_verifiers import OnError, make_row_verifier
from trialogue.samplers.prefix.engine.rounds import Rounds, SharedState
from trialogue.samplers.prefix.engine.run import STEPS_PER_TOKEN, choose_batch_size
from trialogue.samplers.prefix.engine.running import BatchRun
from trialogue.samplers.prefix.engine.sample_request import SampleRequest
from trialogue.samplers.prefix.engine.terms import Terms
from trialogue.samplers.prefix.output.samples import Samples
from trialogue.samplers.prefix.prompts import (
    maximum_lengths,
    prompt_tensors,
    replace_empty_prompts,
    require_known_tokens,
    validate_sample_ids,
)
from trialogue.samplers.truncation import Truncated
from trialogue.validation import Count, Natural, validated
from trialogue.verifiers.functions.tolerant import ErrorLog


@dataclass(eq=False)
class _SettingsInUse:
    """The verifier of a combination of settings, and the number of submissions that use these settings."""

    number: int
    verifier: Verifier
    raised: ErrorLog | None
    users: int = 0


class Submission(SampleRequest):
    """A request to an `OpenRun`: a prompt, its settings, and its samples. Created by `OpenRun.submit`.

    Args:
        terms: Settings of the request.
        *request: Positional arguments of `SampleRequest`.
        **settings: Keyword arguments of `SampleRequest`.
    """

    def __init__(self, terms: Terms, *request: Any, **settings: Any) -> None:
        super().__init__(*request, **settings)
        self.terms = terms

    @property
    def has_raised(self) -> bool:
        """Whether the verifier has raised an error in this or another unfinished submission with the same settings."""
        return any(cast(Mapping[int, ErrorLog], self.raised).values())


class FinishedSamples(NamedTuple):
    """Samples of one request that finished in one step of an `OpenRun`.

    Attributes:
        submission: The request.
        samples: The samples. Their `index` is the index in the request.
    """

    submission: Submission
    samples: Samples


class PartialSample(NamedTuple):
    """A sample in progress, with the tokens generated so far.

    Attributes:
        submission: The request to which the sample belongs.
        place: Index of the sample in the request.
        completion: Token ids of the completion so far.
    """

    submission: Submission
    place: int
    completion: list[int]


class OpenRun:
    """Generates samples for many requests in one batch. New requests can be added at any time, as in a server.

    `submit` adds a request to the queue. `step` moves all samples in progress by one step, after it has
    started queued samples if there is room. `withdraw` cancels a request. A sample is determined by its
    prompt, settings and seed, up to the rounding of the oracle. Calls must not overlap. After an exception in
    `step` the run is unusable.

    Args:
        oracle: The model to sample from, without truncation.
        sampler: The sampler (default: ancestral sampling).
        batch_size: Largest number of rows that move at once (default: chosen by the oracle).
        capacity: Largest number of tokens of a row (default: the oracle's `max_length`).
        layers: Blocks of the model whose hidden states verifiers may read (default: none).
        memory: Number of prefixes whose model results are cached.
        on_error: What to do if a verifier or target raises: "raise" ends the run, "reject" rejects the
            prefix.

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
        self._penalties = dict[int, Penalties]()
        most = oracle.batch_size if batch_size is None else batch_size
        rows = choose_batch_size(oracle, self.sampler, most, most)
        batch = Batch(
            oracle,
            rows,
            self.capacity,
            layers=layers,
            memory=memory,
            stop=self._stops,
            scored=True,
            truncations=self._truncations,
            penalties=self._penalties,
            stores_distributions=self.sampler.goes_back,
        )
        self._verifier = CachedVerifierPerRow({}, batch)
        self._running = BatchRun[Submission](
            Groups(self.sampler, batch), self._verifier, room=rows // self.sampler.rows_per_sample
        )
        self._settings, self._numbers = dict[Terms, _SettingsInUse](), count()

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
        """Add a request for completions of a prompt. The following calls of `step` generate them.

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
        require_known_tokens(tokens, lengths, self._oracle.vocab_size)
        max_new_tokens = terms.max_new_tokens
        limit = maximum_lengths(
            self._oracle, lengths, self.capacity if max_new_tokens is None else max_new_tokens
        )
        limit = limit.clamp_max(self.capacity)
        length = int(lengths[0])
        if length > self.capacity:
            raise InputError("prompt", length, f"use a prompt of at most {self.capacity} tokens")
        ids = validate_sample_ids(sample_ids, num_samples)
        in_use = self._settings_of(terms)
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
            settings_id=torch.tensor([in_use.number]),
            decode=terms.decoder(self._oracle),
            parsers=() if in_use.verifier.parser is None else [in_use.verifier.parser],
            raised={} if in_use.raised is None else {in_use.number: in_use.raised},
            scored=token_log_probs,
            judged=terms.verifier is not None,
        )
        in_use.users += 1
        self._running.submit(submission)
        return submission

    def _settings_of(self, terms: Terms) -> _SettingsInUse:
        """Return the shared entry for the settings `terms`, adding one if no unfinished submission uses them."""
        if terms not in self._settings:
            number, truncation = next(self._numbers), terms.truncated(self._oracle)
            stop = terms.stop_condition(self._oracle)
            raised = ErrorLog() if self._on_error == "reject" else None
            verifier = make_row_verifier(terms.verifier, terms.stop, raised)
            if not set(verifier.layers) <= set(self._layers):
                hint = f"create the run with layers={verifier.layers}, which the verifier reads"
                raise InputError("layers", self._layers, hint)
            self._verifier.add(number, verifier)
            self._truncations[number] = truncation
            if terms.penalties is not None:
                self._penalties[number] = terms.penalties
            if stop is not None:
                self._stops[number] = stop
            self._settings[terms] = _SettingsInUse(number, verifier, raised)
        return self._settings[terms]

    def withdraw(self, submission: Submission) -> None:
        """Cancel the unfinished samples of a submission and free their rows.

        Args:
            submission: Result of `submit`. If all of its samples are finished, nothing happens.
        """
        if submission in self._running.requests:
            self._running.withdraw(submission)
            self._end(submission)

    def _end(self, submission: Submission) -> None:
        in_use = self._settings[submission.terms]
        in_use.users -= 1
        if not in_use.users:
            del self._settings[submission.terms], self._truncations[in_use.number]
            self._stops.pop(in_use.number, None)
            self._penalties.pop(in_use.number, None)
            self._verifier.remove(in_use.number)

    @property
    def busy(self) -> bool:
        """Whether there are unfinished samples."""
        return self._running.busy

    @property
    def passes(self) -> int:
        """Number of forward passes since the run was created."""
        return self._running.total[0]

    def exclude_idle_time(self) -> None:
        """Exclude the time since the last step, in which the run was idle, from the `seconds` of samples."""
        self._running.exclude_idle_time()

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

    def growing(self) -> Iterator[PartialSample]:
        """Yield the completion so far of each sample in progress."""
        places, sequences, lengths = self._running.samples_in_progress()
        longest = int(lengths.max()) if len(lengths) else 0
        columns = places.tolist(), sequences[:, :longest].tolist(), lengths.tolist()
        for place, tokens, length in zip(*columns, strict=True):
            submission = self._running.find_request(place)
            start, own = int(submission.lengths[0]), place - submission.earliest
            yield PartialSample(submission, own, tokens[start:length])
