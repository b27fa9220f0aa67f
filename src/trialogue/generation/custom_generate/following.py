"""What is taken from a run while it goes on: tokens for a streamer, and the distributions that they are drawn from."""

from typing import Any, cast

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import Judges, Sampler, Uses
from trialogue.samplers.prefix.output.samples import Samples


class _WatchedDecoding:
    """The `decoding` itself; `uncut` are the distributions (n, vocab) that it last cut, None before that."""

    def __init__(self, decoding: Decoding) -> None:
        self._decoding = decoding
        self.uncut: Tensor | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoding, name)

    def log_probs(self, rows: Tensor, lengths: Tensor | None = None, cut: bool = True) -> Tensor:
        """Return the next-token distribution (n, vocab) of each row."""
        distributions = self._decoding.log_probs(rows, lengths, cut=False)
        return self.cut(distributions, rows) if cut else distributions

    def cut(self, log_probs: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return what top-k and top-p keep of `log_probs` (n, vocab) of `rows` (n,), renormalised."""
        self.uncut = log_probs
        return self._decoding.cut(log_probs, rows)


class RecordedSampler(Sampler[Any]):
    """The sampler `sampler`, which never goes back, and the distribution that each token is drawn from.

    With `greedy` the distribution is the one before the cut to its likeliest token, so that it tells what the others
    had; what the sampler does is the same. Raises `InputError` for a sampler that draws a token otherwise than from one
    distribution.
    """

    uses: Uses = "nothing"
    judges: Judges = "outputs"
    weighted = masks_first = False
    keeps_prompts, goes_back = True, False

    def __init__(self, sampler: Sampler[Any], samples: int, *, greedy: bool) -> None:
        self._sampler, self._greedy = sampler, greedy
        self.uses, self.judges, self.weighted = sampler.uses, sampler.judges, sampler.weighted
        self.masks_first, self.keeps_prompts = sampler.masks_first, sampler.keeps_prompts
        self._drawn: list[tuple[Tensor, Tensor]] = []
        self._distributions: list[list[Tensor]] = [[] for _ in range(samples)]

    def init(self, decoding: Decoding) -> Any:
        """The state of the sampler."""
        return self._sampler.init(decoding)

    def step(self, decoding: Decoding, state: Any, verifier: Judge, choose: Choose) -> tuple[Moves, Any]:
        """The step of the sampler."""
        watched = _WatchedDecoding(decoding)

        def noted(log_weights: Tensor, rows: Tensor) -> Tensor:
            distributions = watched.uncut if self._greedy and watched.uncut is not None else log_weights
            if self._drawn or log_weights.shape[1] != decoding.vocab_size or len(distributions) != len(rows):
                hint = f"{type(self._sampler).__name__} draws a token in several parts: leave it out"
                raise InputError("output_scores", True, hint)
            self._drawn.append((rows, distributions.log_softmax(-1)))
            return choose(log_weights, rows)

        return self._sampler.step(
            cast(Decoding, watched) if self._greedy else decoding, state, verifier, noted
        )

    def file(self, samples: Tensor) -> None:
        """Note what was drawn in this step by the rows of `samples` (rows,)."""
        for rows, distributions in self._drawn:
            for sample, distribution in zip(samples[rows].tolist(), distributions, strict=True):
                self._distributions[sample].append(distribution)
        self._drawn.clear()

    def scores(self, steps: int, vocab_size: int, pad: int, device: torch.device) -> tuple[Tensor, ...]:
        """Of each of `steps` steps the log-laws (samples, vocab); where a sample was finished, `pad` is certain."""
        finished = torch.full((vocab_size,), -torch.inf)
        finished[pad] = 0.0
        return tuple(
            torch.stack(
                [
                    distributions[step].float() if step < len(distributions) else finished
                    for distributions in self._distributions
                ]
            ).to(device)
            for step in range(steps)
        )


class Follower:
    """The observer of a run that gives the tokens of its one sample to a `streamer`, and files what was `recorded`."""

    def __init__(self, start: int, streamer: Any = None, recorded: RecordedSampler | None = None) -> None:
        self._seen, self._streamer, self._recorded = start, streamer, recorded

    def moved(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Told after every step."""
        if self._recorded is not None:
            self._recorded.file(samples)
        if self._streamer is not None:
            for token in tokens[0, self._seen : int(lengths[0])].clone():
                self._streamer.put(token[None])
            self._seen = int(lengths[0])

    def filed(self, places: Tensor, samples: Samples) -> None:
        """Nothing that was not known already."""
