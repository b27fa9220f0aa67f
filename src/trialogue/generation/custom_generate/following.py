"""Streaming of tokens, and recording of the distributions from which tokens are sampled."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import Judges, Sampler, Uses
from trialogue.samplers.prefix.output.samples import Samples


class _UncutDecoding:
    """Wrapper of a `Decoding` that remembers the last next-token distributions before truncation.

    The distributions are in the attribute `uncut` (n, vocab).
    """

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
        """Truncate and normalise `log_probs` (n, vocab) of `rows` (n,), and store them as they were before."""
        self.uncut = log_probs
        return self._decoding.cut(log_probs, rows)


class RecordedSampler(Sampler[Any]):
    """Wrapper of a sampler that records the distribution from which each token is sampled.

    The wrapped sampler must never remove tokens. It generates the same samples as without the wrapper.

    Args:
        sampler: Sampler to record.
        samples: Total number of samples.
        greedy: Whether decoding is greedy. The recorded distribution is then the one before all but the most
            likely token are removed.

    Raises:
        InputError: If the sampler does not sample each token from one distribution.
    """

    uses: Uses = "nothing"
    judges: Judges = "outputs"
    weighted = masks_first = False
    keeps_prompts, goes_back = True, False
    is_final_when_complete = weights_estimate_mass = True
    failure_reason = ""

    def __init__(self, sampler: Sampler[Any], samples: int, *, greedy: bool) -> None:
        self._sampler, self._greedy = sampler, greedy
        self.uses, self.judges, self.weighted = sampler.uses, sampler.judges, sampler.weighted
        self.masks_first, self.keeps_prompts = sampler.masks_first, sampler.keeps_prompts
        self.is_final_when_complete = sampler.is_final_when_complete
        self.weights_estimate_mass, self.failure_reason = (
            sampler.weights_estimate_mass,
            sampler.failure_reason,
        )
        self._step_distributions: list[tuple[Tensor, Tensor]] = []
        self._distributions: list[list[Tensor]] = [[] for _ in range(samples)]

    def init(self, decoding: Decoding) -> Any:
        """Return the initial state of the wrapped sampler.

        Args:
            decoding: Sequences that the sampler extends.
        """
        return self._sampler.init(decoding)

    def remarks(self, state: Any) -> Sequence[str | None]:
        """Return the remarks of the wrapped sampler.

        Args:
            state: State of the wrapped sampler.
        """
        return self._sampler.remarks(state)

    def step(
        self, decoding: Decoding, state: Any, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, Any]:
        """Run one step of the wrapped sampler and record the distributions of the sampled tokens.

        Args:
            decoding: Sequences that the sampler extends.
            state: State of the wrapped sampler.
            verifier: Verifier of the sequences.
            choose: Function that samples an index per row from log-weights.

        Returns:
            The changes of the sequences, and the new state of the wrapped sampler.
        """
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
        """Append the distributions recorded in the last step to the list of each sample.

        Args:
            samples: Index of the sample in each row, shape (rows,).
        """
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


class TokenStreamer:
    """Observer of a run that passes new tokens of the first sample to a streamer of transformers.

    Args:
        start: Number of tokens of the prompt.
        streamer: Streamer of transformers that receives the new tokens, or None.
        recorded: Sampler that records distributions, or None. After each step, its distributions are assigned to the
            samples.
    """

    def __init__(self, start: int, streamer: Any = None, recorded: RecordedSampler | None = None) -> None:
        self._length, self._streamer, self._recorded = start, streamer, recorded

    def on_step(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Stream the new tokens of the first sample, and store the distributions of the last step.

        Args:
            samples: Indices of the running samples, shape (n,).
            tokens: Token ids of the running samples, shape (n, capacity).
            lengths: Number of tokens of each running sample, shape (n,).
        """
        if self._recorded is not None:
            self._recorded.assign(samples)
        if self._streamer is not None:
            for token in tokens[0, self._length : int(lengths[0])].clone():
                self._streamer.put(token[None])
            self._length = int(lengths[0])

    def on_finished(self, places: Tensor, samples: Samples) -> None:
        """Do nothing, because `on_step` has already streamed all tokens of the finished samples.

        Args:
            places: Indices of the finished samples, shape (n,).
            samples: The finished samples.
        """
