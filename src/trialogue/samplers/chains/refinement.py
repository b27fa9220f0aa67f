"""Iterative refinement: every token of a sequence anew from the whole of it, a few times, in parallel."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Chain, SequenceModel, StepInfo, as_model
from trialogue.oracles.whole import answered
from trialogue.randomness import Choose
from trialogue.validation import Count, validated


class Refined(NamedTuple):
    """Sequences, what the next step reads as masks, and what the last one made of their tokens."""

    tokens: Tensor
    """(rows, N) int64"""
    masked: Tensor
    """(rows, N) bool: tokens there mean nothing to the next step"""
    scores: Tensor
    """(rows, N) float: log-probabilities of the tokens when they were chosen; 0 of tokens that never were"""
    filled: Tensor
    """(rows,) int64: how many masks a step fills for good, by the schedule of mask-predict"""


@validated
@dataclass(frozen=True)
class Refinement(Chain[Refined]):
    """All tokens at once from the model's distributions given the sequence as it stands: X^(t+1) = f(X^(t)), equation
    4.9.

    `start` "random" reads the sequence that it is given (draw its tokens uniformly for the method of the thesis);
    "mask" reads masks everywhere at first. `choice` "argmax" takes the likeliest token, "sampled" draws it. `keep` says
    what a step leaves as it was: "stutter" each new token that equals the one before it, where the old token stays,
    "nothing", or "confident", the schedule of mask-predict (Ghazvininejad et al. 2019): a step fills the masks, and
    then masks the least likely tokens again, N / `steps` fewer than before, until none is left. A sequence that a step
    by argmax does not change is a fixed point.

    From random tokens it is a Markov chain of the tokens, from masks one of tokens and masks.

    The model is a masked oracle (`Masked.refined_log_probs`). It is no heat bath of any distribution: what it converges
    to is its own. Raises `InputError` for other words, and for "confident" without masks at the start.
    """

    start: Literal["random", "mask"] = "random"
    choice: Literal["argmax", "sampled"] = "argmax"
    keep: Literal["stutter", "nothing", "confident"] = "stutter"
    steps: Count = 10

    def __post_init__(self) -> None:
        if self.keep == "confident" and self.start != "mask":
            raise InputError(
                "start", self.start, 'the schedule of mask-predict starts from masks: use "mask"'
            )

    def init(self, model: SequenceModel, tokens: Tensor) -> Refined:
        """Nothing is known of the tokens, or they are masked."""
        masked = as_model(model).free(tokens) & (self.start == "mask")
        filled = -(-masked.sum(1) // self.steps)
        return Refined(tokens, masked, torch.zeros_like(tokens, dtype=torch.float32), filled)

    def step(self, model: SequenceModel, state: Refined, choose: Choose) -> tuple[Refined, StepInfo]:
        """Ask for all tokens once, and take them."""
        tokens, masked, scores, filled = state
        if self.keep == "confident" and not bool(masked.any()):
            return state, StepInfo()
        distributions = self._laws(model, tokens, masked)
        found, drawn = distributions.max(-1)
        if self.choice == "sampled":
            drawn = _drawn(distributions, as_model(model).free(tokens), drawn, choose)
            found = distributions.gather(2, drawn[:, :, None])[:, :, 0]
        found = found.to(scores.dtype)
        if self.keep == "confident":
            tokens, scores = torch.where(masked, drawn, tokens), torch.where(masked, found, scores)
            again = _least_likely(masked.sum(1) - filled, scores)
            return Refined(tokens, again, scores, filled), StepInfo()
        if self.keep == "stutter":
            left = torch.zeros_like(masked)
            left[:, 1:] = (drawn[:, 1:] == drawn[:, :-1]) & ~masked[:, 1:]
            before = distributions.gather(2, tokens[:, :, None])[:, :, 0].to(scores.dtype)
            drawn, found = torch.where(left, tokens, drawn), torch.where(left, before, found)
        return Refined(drawn, torch.zeros_like(masked), found, filled), StepInfo()

    def _laws(self, model: SequenceModel, tokens: Tensor, masked: Tensor) -> Tensor:
        asked = as_model(model)
        if not hasattr(asked, "refined_log_probs"):
            raise InputError("model", type(model).__name__, "refinement asks a masked oracle")
        shape = (*tokens.shape, int(asked.vocab_size))
        return answered("refined_log_probs", asked.refined_log_probs(tokens, masked), shape)


def _least_likely(count: Tensor, scores: Tensor) -> Tensor:
    """Which tokens (rows, N) have the `count` (rows,) least `scores` (rows, N); of equal ones the first."""
    ranks = scores.argsort(dim=1, stable=True).argsort(dim=1)
    return ranks < count[:, None]


def _drawn(distributions: Tensor, free: Tensor, likeliest: Tensor, choose: Choose) -> Tensor:
    """Tokens (rows, N) drawn at `free` sites (rows, N) from `distributions` (rows, N, vocab); elsewhere the
    `likeliest`.
    """
    drawn = likeliest.clone()
    for site in range(distributions.shape[1]):
        rows = free[:, site].nonzero()[:, 0]
        if len(rows):
            drawn[rows, site] = choose(distributions[rows, site], rows)
    return drawn
