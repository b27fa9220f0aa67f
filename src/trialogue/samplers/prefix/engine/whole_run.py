"""A run of one order, from its first sample to its last."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.samplers.prefix.engine.filed import Filed
from trialogue.samplers.prefix.engine.order import Order
from trialogue.samplers.prefix.engine.running import Running
from trialogue.samplers.prefix.samples import Samples


class WholeRun:
    """The run `running`, which nothing else is asked for than the samples of `order`, filed in `filed`."""

    def __init__(self, running: Running, order: Order, filed: Filed) -> None:
        self._running, self._order, self._filed = running, order, filed
        running.submit(order, filed)

    def finish(self, progress: bool) -> None:
        """Run until every sample is filed."""
        with tqdm(total=len(self._order), unit="sample", disable=not progress, leave=False) as bar:
            for places in self.steps():
                bar.update(len(places))

    def steps(self) -> Iterator[Tensor]:
        """Run step by step until every sample is filed; gives the places (n,) of those that each step finished."""
        none = torch.zeros(0, dtype=torch.int64)
        while self._running.busy:
            # Cloned outside of inference mode, so that what is made of them may be written to.
            yield next((finished.places.clone() for finished in self._running.step()), none)

    def under_way(self) -> tuple[Tensor, Tensor, Tensor]:
        """The samples (n,) under way, by their places, and where the first row of each stands: tokens and lengths."""
        return self._running.under_way()

    def prompt_of(self, place: int) -> tuple[int, int]:
        """The index of the prompt of the sample at `place`, and the prompt's length."""
        request = self._order.request
        return int(request.prompt[place]), int(request.lengths[place])

    def filed(self, places: Tensor) -> Samples:
        """The samples at `places` (n,), which are finished; their `total` is what they cost themselves."""
        return self._filed.samples(places)

    def samples(self) -> Samples:
        """All samples, which are finished, with the cost and the trace of the whole run."""
        samples = self._filed.samples(torch.arange(len(self._order)))
        passes, seconds = self._running.total
        total = samples.total._replace(forward_passes=passes, seconds=seconds)
        return replace(samples, total=total, trace=self._running.trace)
