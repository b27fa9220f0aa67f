"""Samples one by one, as they finish or while they grow, for a loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, as_oracle
from trialogue.samplers.prefix.engine.run import RunSettings, started
from trialogue.samplers.prefix.engine.whole_run import WholeRun
from trialogue.samplers.prefix.output.sample import Sample
from trialogue.samplers.prefix.prompts import Prompts, decoder
from trialogue.validation import validated

_OF_WHOLE_RUNS = {
    "progress": "the loop sees how many samples there are",
    "trace": "it is part of the Samples that generate returns",
}


@validated
def stream(
    oracle: Autoregressive,
    prompts: Prompts | Sequence[str] | None = None,
    *,
    ordered: bool = False,
    partial: bool = False,
    **settings: Any,
) -> "SampleStream":
    """Draw what `generate` draws, one `Sample` after the other.

    Use `for sample in stream(...)` to work between one sample and the next, or `async for` to draw in a thread. A loop
    that is left draws no more.

    Args:
        oracle: The model to sample from.
        prompts: The prompts, as for `generate`.
        ordered: Give samples in the order of the prompts instead of as they finish.
        partial: Also give a sample whenever it has changed. It is not `finished`, its text leaves out an end that may
            become a stop string, and a sampler that goes back may take back tokens.
        settings: Other arguments of `generate`, except `progress` and `trace`.

    Raises:
        InputError: As `generate` does; for `progress` and `trace`; and if two loops share one stream.
    """
    oracle = as_oracle(oracle)
    if partial and ordered:
        raise InputError("ordered", True, "leave it out: partial samples come as they change")
    for name, hint in _OF_WHOLE_RUNS.items():
        if settings.pop(name, False):
            raise InputError(name, True, f"leave it out of stream: {hint}")
    run = started(oracle, prompts, RunSettings(**settings))
    return SampleStream(run, ordered, partial, decoder(oracle, settings.get("stop"), final=False))


class SampleStream:
    """The samples of one run, for one loop, with or without `async`; `stream` makes them."""

    def __init__(
        self, run: WholeRun, ordered: bool, partial: bool, text: Callable[[Sequence[int]], str] | None
    ) -> None:
        self._run, self._text, self._partial, self._taken = run, text, partial, False
        self._samples = _in_order(self._drawn()) if ordered else self._drawn()

    def __iter__(self) -> Iterator[Sample]:
        self._take()
        return self._samples

    def __aiter__(self) -> AsyncIterator[Sample]:
        self._take()
        return self._awaited()

    def _take(self) -> None:
        if self._taken:
            hint = "another loop has its samples: call stream again for a run of its own"
            raise InputError("stream", "in use", hint)
        self._taken = True

    def _drawn(self) -> Iterator[Sample]:
        shown: dict[int, tuple[int, ...]] = {}
        for places in self._run.steps():
            for sample in self._run.order.samples(places):
                shown.pop(sample.index, None)
                yield sample
            if self._partial:
                yield from self._changed(shown)

    def _changed(self, shown: dict[int, tuple[int, ...]]) -> Iterator[Sample]:
        """The samples under way whose tokens are others than those `shown`, by place."""
        order = self._run.order
        rows = zip(*(column.tolist() for column in self._run.running.under_way()), strict=True)
        for place, tokens, length in rows:
            prompt, start = int(order.prompt[place]), int(order.lengths[place])
            completion = tuple(tokens[start:length])
            if shown.get(place, ()) != completion:
                shown[place] = completion
                text = None if self._text is None else self._text(completion)
                yield Sample(place, prompt, completion, text, finished=False)

    async def _awaited(self) -> AsyncIterator[Sample]:
        # Threads of torch are counted by thread.
        one = ThreadPoolExecutor(1, "stream", torch.set_num_threads, (torch.get_num_threads(),))
        loop = asyncio.get_running_loop()
        try:
            while (sample := await loop.run_in_executor(one, next, self._samples, None)) is not None:
                yield sample
        finally:
            # Behind a step that may still be under way.
            one.submit(self._samples.close)  # type: ignore[attr-defined]
            one.shutdown(wait=False)


def _in_order(samples: Iterator[Sample]) -> Iterator[Sample]:
    early: dict[int, Sample] = {}
    following = 0
    for sample in samples:
        early[sample.index] = sample
        while following in early:
            yield early.pop(following)
            following += 1
