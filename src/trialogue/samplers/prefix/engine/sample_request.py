"""Class `SampleRequest`: the prompts, settings and results of samples that are generated together."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.shared_results import Meter
from trialogue.samplers.prefix.batch.tree import Root
from trialogue.samplers.prefix.engine.rounds import Rounds
from trialogue.samplers.prefix.output.sample import Parser
from trialogue.samplers.prefix.output.samples import Cost, Samples
from trialogue.verifiers.functions.tolerant import ErrorLog

_STOPPED = ("", "failed", "max_steps", "max_queries")


class SampleRequest:
    """A request to generate the same number of samples for each of several prompts, and its results.

    Each prompt has a `settings_id`, an integer that identifies its settings, such as its verifier.

    Args:
        tokens: Token ids (prompts, width) of the prompts.
        lengths: Lengths (prompts,) of the prompts.
        limit: Lengths (prompts,) at which samples are complete.
        ids: Keys (n,) of the random streams of the samples.
        seed: Seed of the random streams.
        max_queries: Maximum number of model calls of one sample (default: no bound).
        max_steps: Maximum number of moves of one sample.
        settings_id: Identifier (prompts,) of the settings of each prompt (default: 0).
        capacity: Length of the longest sample (default: the largest `limit`).
        decode: Function from completions to texts, if there are texts.
        rounds: Function from the index (n,) of each sample's prompt to the rounds in which the samples begin.
        parsers: For each prompt, the function that converts an accepted text to a Python value, or None.
        raised: By settings_id, the record of errors of a verifier that may raise.
        scored: Store the log-probability of every token (default: False).
        judged: Call the verifier for finished samples (default: True).

    Attributes:
        earliest: Index of the first sample in the run.
        num_admitted: Number of samples that have been added to the batch.
        prompt: Index (n,) of each sample's prompt.
        lengths: Length (n,) of each sample's prompt.
        limit: Length (n,) at which each sample is complete.
        settings_id: Identifier (n,) of the settings of each sample.
        remarks: Remarks of the sampler by index of the sample.
        columns: Values of all samples by field name of `Samples`. They are written by `Groups.store`.
    """

    def __init__(
        self,
        tokens: Tensor,
        lengths: Tensor,
        limit: Tensor,
        ids: Tensor,
        *,
        seed: int = 0,
        max_queries: int | None = None,
        max_steps: int,
        rounds: Callable[[Tensor], Rounds],
        settings_id: Tensor | None = None,
        capacity: int | None = None,
        decode: Callable[[Sequence[int]], str] | None = None,
        parsers: Sequence[Parser | None] = (),
        raised: Sequence[ErrorLog] | Mapping[int, ErrorLog] = (),
        scored: bool = False,
        judged: bool = True,
    ) -> None:
        self.earliest = self.num_admitted = 0
        self.ids, self.seed, self.max_queries, self.max_steps = ids, seed, max_queries, max_steps
        self._tokens = tokens
        self.prompt = torch.arange(len(lengths)).repeat_interleave(len(ids) // len(lengths))
        self.rounds = rounds(self.prompt)
        settings_ids = torch.zeros_like(lengths) if settings_id is None else settings_id
        self.lengths, self.limit, self.settings_id = (
            lengths[self.prompt],
            limit[self.prompt],
            settings_ids[self.prompt],
        )
        named = zip(tokens.tolist(), lengths.tolist(), settings_ids.tolist(), strict=True)
        self._roots = [Root(tuple(row[:length]), under) for row, length, under in named]
        self._left = Counter(self._list_roots(self.prompt))
        self._decode, self._parsers, self.raised, self.judged = decode, parsers, raised, judged
        self.capacity = int(limit.max()) if capacity is None else capacity
        self.ended = torch.zeros_like(ids)
        self.errors: list[str | None] = [None] * len(ids) if raised else []
        self.remarks = dict[int, str]()
        self.columns = {
            "tokens": torch.zeros(len(ids), self.capacity, dtype=torch.int64),
            "lengths": torch.zeros_like(ids),
            "accepted": torch.zeros(len(ids), dtype=torch.bool),
            **{name: torch.zeros_like(ids) for name in Meter.counts},
            **{
                name: torch.zeros(len(ids), dtype=torch.float64)
                for name in ("log_prob", "log_weight", "seconds")
            },
        }
        if scored:
            self.columns["token_log_probs"] = torch.zeros(len(ids), self.capacity, dtype=torch.float64)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, root: object) -> bool:
        """Whether the prompt and settings_id of `root` have unfinished samples."""
        return root in self._left

    def _list_roots(self, prompts: Tensor) -> list[Root]:
        return [self._roots[prompt] for prompt in prompts.tolist()]

    @property
    def left(self) -> int:
        """Number of unfinished samples."""
        return self._left.total()

    @property
    def roots(self) -> set[Root]:
        """Pairs of a prompt and its settings_id that have unfinished samples."""
        return set(self._left)

    def prompt_tokens(self, number: int) -> Tensor:
        """Return how many prompt tokens must be evaluated if the next samples are started.

        Args:
            number: Number of samples.

        Returns:
            Cumulative numbers (number,) int64 of tokens of the first 1, 2, ... samples.
        """
        ready, stop = self.rounds.ready, self.num_admitted + number
        before, after = (
            ready[max(0, self.num_admitted - 1) : stop - 1],
            ready[max(1, self.num_admitted) : stop],
        )
        known = self.prompt[before] == self.prompt[after]
        begins = torch.cat((torch.ones(number - len(known), dtype=torch.bool), ~known))
        return (self.lengths[ready[self.num_admitted : stop]] * begins).cumsum(0)

    @property
    def ready(self) -> int:
        """Number of samples that can be started now."""
        return len(self.rounds.ready) - self.num_admitted

    def take_next_samples(self, number: int) -> Tensor:
        """Remove the next samples from the queue of this request, and return their indices.

        Args:
            number: Number of samples, at most `ready`.

        Returns:
            Indices (number,) int64.
        """
        samples = self.rounds.ready[self.num_admitted : self.num_admitted + number]
        self.num_admitted += number
        return samples

    def prompts(self, samples: Tensor, capacity: int) -> tuple[Tensor, Tensor]:
        """Return the prompts of the given samples as a padded tensor.

        Args:
            samples: Indices (n,) of the samples.
            capacity: Number of columns of the result.

        Returns:
            Tokens (n, capacity), padded with zeros, and lengths (n,).
        """
        tokens = torch.zeros(len(samples), capacity, dtype=torch.int64)
        width = min(self._tokens.shape[1], capacity)
        tokens[:, :width] = self._tokens[self.prompt[samples], :width]
        lengths = self.lengths[samples]
        tokens *= torch.arange(capacity) < lengths[:, None]
        return tokens, lengths

    def end(self, samples: Tensor) -> set[Root]:
        """Mark samples as finished, and return the prompts that need no further samples.

        Args:
            samples: Indices (n,) of the samples.

        Returns:
            The pairs of prompt and settings_id that have no unfinished samples left.
        """
        roots = self._list_roots(self.prompt[samples])
        self._left.subtract(roots)
        over = {root for root in roots if not self._left[root]}
        for root in over:
            del self._left[root]
        return over

    def samples(self, places: Tensor) -> Samples:
        """Return the results of some samples. Their total cost is the sum of the individual costs.

        Args:
            places: Indices (n,) of the samples.
        """
        columns: dict[str, Any] = {name: column[places] for name, column in self.columns.items()}
        counts = {name: int(columns[name].sum()) for name in Meter.counts}
        return Samples(
            index=places.clone(),
            prompt=self.prompt[places],
            prompt_lengths=self.lengths[places],
            stopped=[_STOPPED[reason] for reason in self.ended[places].tolist()],
            total=Cost(**counts, seconds=float(columns["seconds"].sum())),
            decode=self._decode,
            parsers=self._parsers,
            errors=[self.errors[place] for place in places.tolist()] if self.errors else (),
            remarks=[self.remarks.get(place) for place in places.tolist()] if self.remarks else (),
            **columns,
        )
