"""Sites drawn apart from each other: all at once from the old state, or one after another."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Chain, Joint, Masked, SequenceModel, Sequences, StepInfo, as_model, sites_of
from trialogue.oracles.whole import every_row
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import site_laws
from trialogue.samplers.chains.subsets import choose_member
from trialogue.validation import validated


@dataclass(frozen=True)
class IndependentParallel(Chain[Sequences]):
    """All sites at once, each from its conditional given the old state: X_i' ~ p(. | X_-i).

    Definition 4.1.11 of the thesis, equation (4.4). Unlike the heat bath it does not leave p invariant.
    """

    heat_bath = True

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Redraw every site."""
        distributions, rows = site_laws(model, state.tokens), every_row(state.tokens)
        values = [choose(distributions[:, site], rows) for site in range(state.tokens.shape[1])]
        return Sequences(torch.stack(values, 1)), StepInfo()


@validated
class ChainRule(Masked, Joint):
    """A masked oracle whose blocks are drawn one site after another, the rest of the block still masked.

    A model for chains that draw blocks, made of any `Masked` oracle by choice: site by site in `order` "forward"
    (from the first to the last) or "random" (uniformly), each from p(. | x outside of what is still masked). Where the
    conditionals belong to a joint distribution, the block is drawn from that distribution; elsewhere the order matters,
    and this is what it means. A block of k sites asks k times.

    Raises `InputError` for a model that is not `Masked`, or another order.
    """

    def __init__(self, model: Masked, order: Literal["forward", "random"] = "forward") -> None:
        oracle = as_model(model)
        if not isinstance(oracle, Masked):
            raise InputError("model", type(model).__name__, "the chain rule asks a masked oracle")
        self.model, self.order = oracle, order
        self.vocab_size, self.sites, self.device = oracle.vocab_size, oracle.sites, oracle.device

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Those of the oracle (rows, N, vocab)."""
        return self.model.log_probs(tokens, masked)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """Those of the oracle (rows, N, vocab)."""
        return self.model.site_log_probs(tokens)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Those of the oracle (rows, vocab)."""
        return self.model.site_log_weights(tokens, sites)

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Tokens (rows, N) after the sites in `block` (rows, N) bool were drawn one after another."""
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
        """log p(x_block | the rest) (rows,), site after site, of the `tokens` (rows, N) as they are.

        For chains that need the distribution of a block, and not only a draw. Raises `InputError` for a random order,
        whose distribution is a mixture over all orders.
        """
        if self.order == "random":
            raise InputError(
                "order", "random", 'the distribution of a block is listed in one order only: use "forward"'
            )
        sites, held = sites_of(block)
        masked, every = block.clone(), every_row(tokens)
        total = torch.zeros(len(tokens), dtype=torch.float64, device=tokens.device)
        for site, absent in zip(sites.T, held.T, strict=True):
            distribution = self.model.log_probs(tokens, masked)[every, site].gather(
                1, tokens[every, site, None]
            )[:, 0]
            # Given what is impossible, the oracle may answer anything.
            total = torch.where(absent | (total == -torch.inf), total, total + distribution.double())
            masked[every, site] = False
        return total
