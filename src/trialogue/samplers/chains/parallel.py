"""Parallel resampling of all positions of a sequence, and sequential sampling of blocks from a masked model."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Chain, Joint, Masked, SequenceModel, Sequences, StepInfo, as_model, list_sites
from trialogue.oracles.whole import every_row
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import site_distributions
from trialogue.samplers.chains.subsets import choose_member
from trialogue.validation import validated


@dataclass(frozen=True)
class IndependentParallel(Chain[Sequences]):
    """Resample all sites (positions) in parallel, each from its distribution given the old tokens of all other sites.

    Definition 4.1.11 of the thesis, equation (4.4): X_i' ~ p(. | X_-i) for all sites i, where p is the model. Unlike
    Gibbs sampling, this chain does not leave p invariant.
    """

    heat_bath = True

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Resample every site of each row independently, given the old tokens.

        Args:
            model: The model, which provides conditional distributions of sites.
            state: Tokens (rows, N) of the independent copies of the chain.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            The new tokens, and empty statistics.
        """
        distributions, rows = site_distributions(model, state.tokens), every_row(state.tokens)
        values = [choose(distributions[:, site], rows) for site in range(state.tokens.shape[1])]
        return Sequences(torch.stack(values, 1)), StepInfo()


@validated
class ChainRule(Masked, Joint):
    """Adapter that lets Markov chains resample blocks of positions (sites) with any `Masked` model.

    The sites of a block are drawn one after the other, with the rest of the block masked. A block of k sites
    takes k model calls. If the model's conditional distributions do not belong to one joint distribution, the
    result depends on the order of the sites.

    Args:
        model: The masked model.
        order: Draw sites from first to last (forward) or in uniformly random order (random) (default:
            forward).

    Raises:
        InputError: If the model is not `Masked`.
    """

    def __init__(self, model: Masked, order: Literal["forward", "random"] = "forward") -> None:
        oracle = as_model(model)
        if not isinstance(oracle, Masked):
            raise InputError("model", type(model).__name__, "use a masked oracle")
        self.model, self.order = oracle, order
        self.vocab_size, self.sites, self.device = oracle.vocab_size, oracle.sites, oracle.device

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the masked model's distribution of every site, given the tokens that are not masked.

        Args:
            tokens: Tokens (rows, N) int64.
            masked: Sites (rows, N) bool whose tokens are hidden.

        Returns:
            Log-probabilities (rows, N, vocab).
        """
        return self.model.log_probs(tokens, masked)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """Return the masked model's distribution of every site given all other sites.

        Args:
            tokens: Tokens (rows, N) int64.

        Returns:
            Log-probabilities (rows, N, vocab).
        """
        return self.model.site_log_probs(tokens)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return the masked model's distribution of one site of each row given all other sites.

        Args:
            tokens: Tokens (rows, N) int64.
            sites: One site (rows,) of each row.

        Returns:
            Log-weights (rows, vocab).
        """
        return self.model.site_log_weights(tokens, sites)

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Resample the sites of a block one after the other, given the tokens outside of the block.

        Args:
            tokens: Tokens (rows, N) int64.
            block: Sites (rows, N) bool of the block of each row.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            The new tokens (rows, N).
        """
        tokens, left = tokens.clone(), block.clone()
        rows = left.any(1).nonzero()[:, 0]
        while len(rows):
            masked = left[rows]
            site = choose_member(masked, rows, choose) if self.order == "random" else masked.long().argmax(1)
            distribution = self.model.log_probs(tokens[rows], masked)[
                torch.arange(len(rows), device=rows.device), site
            ]
            tokens[rows, site] = choose(distribution, rows)
            left[rows, site] = False
            rows = left.any(1).nonzero()[:, 0]
        return tokens

    def block_log_weights(self, tokens: Tensor, block: Tensor) -> Tensor:
        """Return the log-probability of the tokens of a block given all other tokens, by the chain rule.

        Args:
            tokens: Tokens (rows, N) int64.
            block: Sites (rows, N) bool of the block.

        Returns:
            Log-probabilities (rows,) float64.

        Raises:
            InputError: If the order is random, for which the distribution is a mixture over all orders.
        """
        if self.order == "random":
            hint = 'use "forward", because the probability of a block needs a fixed order'
            raise InputError("order", "random", hint)
        sites, held = list_sites(block)
        masked, every = block.clone(), every_row(tokens)
        total = torch.zeros(len(tokens), dtype=torch.float64, device=tokens.device)
        for site, absent in zip(sites.T, held.T, strict=True):
            distribution = self.model.log_probs(tokens, masked)[every, site].gather(
                1, tokens[every, site, None]
            )[:, 0]
            # The distribution given an event of probability zero is arbitrary.
            total = torch.where(absent | (total == -torch.inf), total, total + distribution.double())
            masked[every, site] = False
        return total
