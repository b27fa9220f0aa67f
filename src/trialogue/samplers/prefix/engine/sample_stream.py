"""Function `stream`, which yields samples while they are generated."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, as_oracle
from trialogue.samplers.prefix.engine.generate_run import GenerateRun
from trialogue.samplers.prefix.engine.run import RunSettings, start_run
from trialogue.samplers.prefix.output.sample import Sample
from trialogue.samplers.prefix.prompts import Prompts, make_decoder
from trialogue.validation import validated

_UNSUPPORTED_SETTINGS = {
    "progress": "count the samples in the loop",
    "trace": "use generate, which returns it with the samples",
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
    """Draw samples as `generate` does, and yield each `Sample` as it finishes.

    Use `for sample in stream(...)` to process each sample before the next one is generated, or `async for` to generate
    them in a thread. Leaving the loop ends the run.

    Args:
        oracle: The model to sample from.
        prompts: The prompts, as for `generate`.
        ordered: Yield samples in the order of the prompts instead of as they finish (default: False).
        partial: Also yield a sample whenever its tokens have changed (default: False). Such a sample is not `finished`,
            and its text excludes an end that may become a stop string. A sampler that goes back may remove tokens
            again.
        settings: Other arguments of `generate`, except `progress` and `trace`.

    Returns:
        An object for a single loop, which yields samples.

    Raises:
        InputError: If `generate` would raise it, `progress` or `trace` is given, or two loops share one stream.

    Example:
        >>> from trialogue import stream
        >>> from trialogue.data import Table
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> tuple(sample.tokens for sample in stream(table, num_samples=2))
        ((0, 1), (0, 1))
    """
    oracle = as_oracle(oracle)
    if partial and ordered:
        raise InputError(
            "ordered", True, "set it to False, because partial samples are yielded as they change"
        )
    for name, hint in _UNSUPPORTED_SETTINGS.items():
        if settings.pop(name, False):
            raise InputError(name, True, f"leave it out of stream and {hint}")
    run = start_run(oracle, prompts, RunSettings(**settings))
    return SampleStream(run, ordered, partial, make_decoder(oracle, settings.get("stop"), final=False))


class SampleStream:
    """Iterator over the samples of one run, for a single `for` or `async for` loop. Created by `stream`."""

    def __init__(
        self, run: GenerateRun, ordered: bool, partial: bool, text: Callable[[Sequence[int]], str] | None
    ) -> None:
        self._run, self._text, self._partial, self._taken = run, text, partial, False
        self._samples = _in_order(self._generate_samples()) if ordered else self._generate_samples()

    def __iter__(self) -> Iterator[Sample]:
        self._take()
        return self._samples

    def __aiter__(self) -> AsyncIterator[Sample]:
        self._take()
        return self._iterate_in_thread()

    def _take(self) -> None:
        if self._taken:
            hint = "call stream again for another loop"
            raise InputError("stream", "in use", hint)
        self._taken = True

    def _generate_samples(self) -> Iterator[Sample]:
        shown: dict[int, tuple[int, ...]] = {}
        for places in self._run.steps():
            for sample in self._run.request.samples(places):
                shown.pop(sample.index, None)
                yield sample
            if self._partial:
                yield from self._changed_samples(shown)

    def _changed_samples(self, shown: dict[int, tuple[int, ...]]) -> Iterator[Sample]:
        """Yield the samples in progress whose tokens differ from those in `shown`, by index."""
        request = self._run.request
        rows = zip(*(column.tolist() for column in self._run.running.samples_in_progress()), strict=True)
        for place, tokens, length in rows:
            prompt, start = int(request.prompt[place]), int(request.lengths[place])
            completion = tuple(tokens[start:length])
            if shown.get(place, ()) != completion:
                shown[place] = completion
                text = None if self._text is None else self._text(completion)
                yield Sample(place, prompt, completion, text, finished=False)

    async def _iterate_in_thread(self) -> AsyncIterator[Sample]:
        # The number of torch threads is a setting of each thread.
        one = ThreadPoolExecutor(1, "stream", torch.set_num_threads, (torch.get_num_threads(),))
        loop = asyncio.get_running_loop()
        try:
            while (sample := await loop.run_in_executor(one, next, self._samples, None)) is not None:
                yield sample
        finally:
            # The generator is closed after the step that may still be running.
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
