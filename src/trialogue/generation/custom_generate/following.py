"""Observers of a running sampler that stream tokens and record the distributions from which they are sampled."""

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


class _UncutDecoding:
    """Wrapper of a `Decoding` that stores in `uncut` the last distributions (n, vocab) before truncation."""

    def __init__(self, decoding: Decoding) -> None:
        self._decoding = decoding
        self.uncut: Tensor | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoding, name)

    def log_probs(self, rows: Tensor, lengths: Tensor | None = None, cut: bool = True) -> Tensor:
        """Return the next-token log-probabilities (n, vocab) of each row."""
        distributions = self._decoding.log_probs(rows, lengths, cut=False)
        return self.cut(distributions, rows) if cut else distributions

    def cut(self, log_probs: Tensor, rows: Tensor | None = None) -> Tensor:
        """Truncate and renormalise `log_probs` (n, vocab) of `rows` (n,), and store the input."""
        self.uncut = log_probs
        return self._decoding.cut(log_probs, rows)


class RecordedSampler(Sampler[Any]):
    """Wrapper of a sampler that records the distribution from which each token is sampled.

    The wrapped sampler must never go back. It behaves as without the wrapper.

    Args:
        sampler: Sampler to record.
        samples: Total number of samples.
        greedy: Whether to record the distribution before the most likely token is chosen.

    Raises:
        InputError: If the sampler does not sample each token from one distribution.
    """

    uses: Uses = "nothing"
    judges: Judges = "outputs"
    weighted = masks_first = False
    keeps_prompts, goes_back = True, False

    def __init__(self, sampler: Sampler[Any], samples: int, *, greedy: bool) -> None:
        self._sampler, self._greedy = sampler, greedy
        self.uses, self.judges, self.weighted = sampler.uses, sampler.judges, sampler.weighted
        self.masks_first, self.keeps_prompts = sampler.masks_first, sampler.keeps_prompts
        self._step_distributions: list[tuple[Tensor, Tensor]] = []
        self._distributions: list[list[Tensor]] = [[] for _ in range(samples)]

    def init(self, decoding: Decoding) -> Any:
        """Return the initial state of the wrapped sampler."""
        return self._sampler.init(decoding)

    def step(self, decoding: Decoding, state: Any, verifier: Judge, choose: Choose) -> tuple[Moves, Any]:
        """Run one step of the wrapped sampler and record its distributions."""
        watched = _UncutDecoding(decoding)

        def record(log_weights: Tensor, rows: Tensor) -> Tensor:
            distributions = watched.uncut if self._greedy and watched.uncut is not None else log_weights
            if (
                self._step_distributions
                or log_weights.shape[1] != decoding.vocab_size
                or len(distributions) != len(rows)
            ):
                hint = f"leave it out: {type(self._sampler).__name__} samples a token in several stages"
                raise InputError("output_scores", True, hint)
            self._step_distributions.append((rows, distributions.log_softmax(-1)))
            return choose(log_weights, rows)

        return self._sampler.step(
            cast(Decoding, watched) if self._greedy else decoding, state, verifier, record
        )

    def assign(self, samples: Tensor) -> None:
        """Assign the distributions of the last step to the sample indices in `samples` (rows,)."""
        for rows, distributions in self._step_distributions:
            for sample, distribution in zip(samples[rows].tolist(), distributions, strict=True):
                self._distributions[sample].append(distribution)
        self._step_distributions.clear()

    def scores(self, steps: int, vocab_size: int, pad: int, device: torch.device) -> tuple[Tensor, ...]:
        """Return the recorded log-probabilities of each step.

        Args:
            steps: Number of steps to return.
            vocab_size: Number of tokens.
            pad: Token that has probability 1 after the end of a sample.
            device: Device of the result.

        Returns:
            One tensor (samples, vocab) float32 per step.
        """
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
    """Observer that streams the tokens of one sample and assigns recorded distributions to samples.

    Args:
        start: Length of the prompt in tokens.
        streamer: Streamer of transformers that receives the new tokens, if any.
        recorded: Sampler whose distributions are assigned after each step, if any.
    """

    def __init__(self, start: int, streamer: Any = None, recorded: RecordedSampler | None = None) -> None:
        self._length, self._streamer, self._recorded = start, streamer, recorded

    def moved(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Handle the tokens of one sampler step."""
        if self._recorded is not None:
            self._recorded.assign(samples)
        if self._streamer is not None:
            for token in tokens[0, self._length : int(lengths[0])].clone():
                self._streamer.put(token[None])
            self._length = int(lengths[0])

    def filed(self, places: Tensor, samples: Samples) -> None:
        """Do nothing, because `moved` has already handled all tokens."""
