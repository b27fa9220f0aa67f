"""The samples of a run, filed as they finish and returned together."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.knowledge import Meter
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.requests import Request
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.sample import Parser
from trialogue.samplers.prefix.samples import Cost, Samples
from trialogue.verifiers.tolerant import Raised

_STOPPED = ("", "failed", "max_steps", "max_queries")


class Filed:
    """Room for the samples of `request`, in their order, of up to `capacity` tokens each.

    `decode` turns completions into texts, if there are any, and `parsers`, by prompt, accepted texts into what they
    stand for. `raised`, by rule, know what its verifier raised, if it may. With `scored` log-probabilities are kept
    token by token. Unless they are `judged`, no verifier is asked about them.
    """

    def __init__(
        self,
        request: Request,
        capacity: int,
        decode: Callable[[Sequence[int]], str] | None = None,
        parsers: Sequence[Parser | None] = (),
        raised: Sequence[Raised] | Mapping[int, Raised] = (),
        scored: bool = False,
        judged: bool = True,
    ) -> None:
        self._request, self._decode, self._parsers, self._raised = request, decode, parsers, raised
        self._judged = judged
        samples, zeros = len(request.ids), torch.zeros_like(request.lengths)
        self._tokens = torch.zeros(samples, capacity, dtype=torch.int64)
        self._lengths, self._stopped = zeros, zeros.clone()
        self._accepted = torch.zeros(samples, dtype=torch.bool)
        self._log_weight, self._log_prob, self._seconds = torch.zeros(
            3, samples, dtype=torch.float64
        ).unbind()
        self._scores = torch.zeros(samples, capacity, dtype=torch.float64) if scored else None
        self._errors: list[str | None] = [None] * samples if raised else []
        self._counts = {name: zeros.clone() for name in Meter.counts}

    def file(
        self,
        groups: Groups,
        stopped: Tensor,
        finished: Tensor,
        judge: Judge | None,
        *,
        earliest: int,
        seconds: float,
        out_of_steps: Tensor,
    ) -> Tensor:
        """File the samples of the groups `stopped` (n,), and return their places (n,) among those of the request.

        `earliest` is the place in the run of the first of those. `finished` (groups,) are groups that ended by
        themselves; of the others `out_of_steps` (groups,) used up their steps. The clock shows `seconds`. The verifier
        behind `judge` has the last word on what is accepted.
        """
        batch, samples, first = groups.batch, groups.sample[stopped] - earliest, groups.first[stopped]
        complete, ended = batch.complete[first], finished[stopped]
        if (log_weight := groups.log_weight) is not None:
            self._log_weight[samples] = log_weight[first]
        # A group that was stopped has not chosen its output yet.
        accepted = complete & (ended | (groups.members == 1)) & (self._log_weight[samples] > -math.inf)
        judged = accepted.nonzero()[:, 0]
        if judge is not None and self._judged and len(judged):
            accepted[judged] = judge.values(first[judged]) > 0
        capacity = self._tokens.shape[1]
        self._tokens[samples] = batch.tokens[first, :capacity]
        self._lengths[samples] = batch.lengths[first]
        self._tokens[samples] *= torch.arange(capacity) < self._lengths[samples, None]
        self._accepted[samples] = accepted
        for name, counts in batch.meter.items():
            self._counts[name][samples] = groups.total(counts)[stopped]
        self._log_prob[samples] = batch.log_prob[first]
        if self._scores is not None:
            self._scores[samples] = batch.token_log_probs(first)[:, :capacity]
        if self._raised:
            failed = ended & ~complete
            for place in (~accepted).nonzero()[:, 0].tolist():
                row = int(first[place])
                sequence, start = batch.tokens[row, : int(batch.lengths[row])], int(batch.start[row])
                raised = self._raised[int(batch.rule[row])]
                self._errors[int(samples[place])] = raised.of(sequence, start, bool(failed[place]))
        self._seconds[samples] = seconds - groups.charged[stopped]
        bounded = torch.where(accepted, 0, torch.where(out_of_steps[stopped], 2, 3))
        self._stopped[samples] = torch.where(ended, torch.where(complete, 0, 1), bounded)
        return samples

    def samples(self, places: Tensor) -> Samples:
        """The samples at `places` (n,), which must be filed; their cost in all is what their own add up to."""
        counts = {name: count[places].clone() for name, count in self._counts.items()}
        seconds = self._seconds[places].clone()
        total = {name: int(count.sum()) for name, count in counts.items()}
        return Samples(
            index=places.clone(),
            tokens=self._tokens[places].clone(),
            lengths=self._lengths[places].clone(),
            prompt=self._request.prompt[places].clone(),
            prompt_lengths=self._request.lengths[places].clone(),
            accepted=self._accepted[places].clone(),
            log_prob=self._log_prob[places].clone(),
            log_weight=self._log_weight[places].clone(),
            seconds=seconds,
            stopped=[_STOPPED[reason] for reason in self._stopped[places].tolist()],
            total=Cost(**total, seconds=float(seconds.sum())),
            trace=None,
            decode=self._decode,
            parsers=self._parsers,
            token_log_probs=None if self._scores is None else self._scores[places].clone(),
            errors=[self._errors[place] for place in places.tolist()] if self._errors else (),
            **counts,
        )
