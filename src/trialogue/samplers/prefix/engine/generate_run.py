"""Class `GenerateRun`, which carries out one call of `generate`."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace

import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.samplers.prefix.engine.running import BatchRun
from trialogue.samplers.prefix.engine.sample_request import SampleRequest
from trialogue.samplers.prefix.output.samples import Samples


class GenerateRun:
    """The run of one call of `generate`, from its first sample to its last.

    Args:
        running: A run without requests.
        request: The request of the call, which is submitted to `running`.
    """

    def __init__(self, running: BatchRun[SampleRequest], request: SampleRequest) -> None:
        self.running, self.request = running, request
        running.submit(request)

    def steps(self) -> Generator[Tensor, None, None]:
        """Run until every sample is finished, and yield the indices (n,) of the samples that each step finished."""
        none = torch.zeros(0, dtype=torch.int64)
        try:
            while self.running.busy:
                # Cloned outside of inference mode, so that tensors computed from them can be modified.
                yield next((places.clone() for _, places in self.running.step()), none)
        finally:
            self.request.rounds.close()

    def finish(self, progress: bool = False) -> Samples:
        """Run until every sample is finished.

        Args:
            progress: Show a progress bar (default: False).

        Returns:
            All samples, with the cost of the run and, if it was requested, the trace.
        """
        bar = tqdm(total=len(self.request), unit="sample", disable=not progress, leave=False)
        with bar, closing(self.steps()) as steps:
            for places in steps:
                bar.update(len(places))
        samples = self.request.samples(torch.arange(len(self.request)))
        passes, seconds = self.running.total
        total = samples.total._replace(forward_passes=passes, seconds=seconds)
        return replace(samples, total=total, trace=self.running.trace)
