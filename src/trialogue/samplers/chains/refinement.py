"""Iterative refinement: resample all tokens of a sequence in parallel, several times."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Chain, SequenceModel, StepInfo, as_model
from trialogue.oracles.whole import require_float_tensor
from trialogue.randomness import Choose
from trialogue.validation import Count, validated


class RefinementState(NamedTuple):
    """State of `Refinement`: the current tokens, and which of them are masked in the next step.

    Attributes:
        tokens: Tokens (rows, N) int64.
        masked: Whether the model receives a mask instead of the token at each site (rows, N) bool in the next step.
        scores: Log-probabilities (rows, N) of the tokens when they were chosen, 0 for tokens of the start.
        filled: Number (rows,) int64 of masks that each step fills permanently, used with keep="confident".
    """

    tokens: Tensor
    masked: Tensor
    scores: Tensor
    filled: Tensor


@validated
@dataclass(frozen=True)
class Refinement(Chain[RefinementState]):
    """Resample all tokens of a sequence in parallel, given the previous sequence (thesis, equation 4.9).

    Each step evaluates the model once on the current tokens. It replaces every token by the most probable
    token at its site (position), or by a token drawn from the model's distribution there. The limit of this
    chain is in general not the distribution of the model.

    Args:
        start: Read the given tokens first (random), drawn uniformly for the method of the thesis, or masks
            everywhere (mask) (default: random).
        choice: Take the most probable token (argmax), or draw one (sampled) (default: argmax).
        keep: Which tokens a step does not change (default: stutter). "stutter" keeps the old token if the new
            one equals the new token before it. "nothing" changes all tokens. "confident" is the schedule of
            mask-predict (Ghazvininejad et al. 2019): a step fills all masks and then masks the least probable
            tokens again. The number of masks decreases by N / `steps` per step, for N tokens.
        steps: Number of steps of the schedule of mask-predict (default: 10).

    Raises:
        InputError: If `keep` is "confident" and `start` is not "mask".
    """

    start: Literal["random", "mask"] = "random"
    choice: Literal["argmax", "sampled"] = "argmax"
    keep: Literal["stutter", "nothing", "confident"] = "stutter"
    steps: Count = 10

    def __post_init__(self) -> None:
        if self.keep == "confident" and self.start != "mask":
            hint = 'use "mask" with keep="confident", which starts from masks'
            raise InputError("start", self.start, hint)

    def init(self, model: SequenceModel, tokens: Tensor) -> RefinementState:
        """Return the initial state.

        Args:
            model: The model.
            tokens: Start (rows, N) of each copy of the chain.

        Returns:
            A state with scores 0, and with masks at all sites that may change if `start` is "mask".
        """
        masked = as_model(model).free(tokens) & (self.start == "mask")
        filled = -(-masked.sum(1) // self.steps)
        return RefinementState(tokens, masked, torch.zeros_like(tokens, dtype=torch.float32), filled)

    def step(
        self, model: SequenceModel, state: RefinementState, choose: Choose
    ) -> tuple[RefinementState, StepInfo]:
        """Evaluate the model once on the current tokens and masks, and replace the tokens (with exceptions by `keep`).

        Args:
            model: A masked oracle with `refined_log_probs`.
            state: Tokens, masks and scores of the rows.
            choose: Function that draws one index per row in proportion to given weights. Used with choice="sampled".

        Returns:
            The new state, and empty statistics.
        """
        tokens, masked, scores, filled = state
        if self.keep == "confident" and not bool(masked.any()):
            return state, StepInfo()
        distributions = self._distributions(model, tokens, masked)
        found, drawn = distributions.max(-1)
        if self.choice == "sampled":
            drawn = _draw(distributions, as_model(model).free(tokens), drawn, choose)
            found = distributions.gather(2, drawn[:, :, None])[:, :, 0]
        found = found.to(scores.dtype)
        if self.keep == "confident":
            tokens, scores = torch.where(masked, drawn, tokens), torch.where(masked, found, scores)
            again = _find_least_likely(masked.sum(1) - filled, scores)
            return RefinementState(tokens, again, scores, filled), StepInfo()
        if self.keep == "stutter":
            left = torch.zeros_like(masked)
            left[:, 1:] = (drawn[:, 1:] == drawn[:, :-1]) & ~masked[:, 1:]
            before = distributions.gather(2, tokens[:, :, None])[:, :, 0].to(scores.dtype)
            drawn, found = torch.where(left, tokens, drawn), torch.where(left, before, found)
        return RefinementState(drawn, torch.zeros_like(masked), found, filled), StepInfo()

    def _distributions(self, model: SequenceModel, tokens: Tensor, masked: Tensor) -> Tensor:
        masked_model = as_model(model)
        if not hasattr(masked_model, "refined_log_probs"):
            raise InputError("model", type(model).__name__, "use a masked oracle with `refined_log_probs`")
        shape = (*tokens.shape, int(masked_model.vocab_size))
        return require_float_tensor(
            "refined_log_probs", masked_model.refined_log_probs(tokens, masked), shape
        )


def _find_least_likely(count: Tensor, scores: Tensor) -> Tensor:
    """Return a mask (rows, N) of the `count` (rows,) tokens with the smallest `scores`, the first among ties."""
    ranks = scores.argsort(dim=1, stable=True).argsort(dim=1)
    return ranks < count[:, None]


def _draw(distributions: Tensor, free: Tensor, most_probable: Tensor, choose: Choose) -> Tensor:
    """Draw tokens (rows, N) at the `free` positions, and take the most probable tokens at all others."""
    drawn = most_probable.clone()
    for site in range(distributions.shape[1]):
        rows = free[:, site].nonzero()[:, 0]
        if len(rows):
            drawn[rows, site] = choose(distributions[rows, site], rows)
    return drawn
