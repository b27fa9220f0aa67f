"""Metropolis-Hastings sampling from the energy of a masked language model."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.oracles import Chain, Masked, SequenceModel, StepInfo, as_model
from trialogue.oracles.whole import every_row, require_float_tensor
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import site_distribution, site_distributions
from trialogue.samplers.chains.subsets import choose_site
from trialogue.validation import Positive, validated


class MaskedMetropolisState(NamedTuple):
    """State of `MaskedMetropolis`: the sequences, and their energies so that they are computed only once.

    Attributes:
        tokens: Tokens (rows, N) int64.
        energy: Energies (rows,) float64.
    """

    tokens: Tensor
    energy: Tensor


@validated
@dataclass(frozen=True)
class MaskedMetropolis(Chain[MaskedMetropolisState]):
    """Metropolis-Hastings sampling of sequences, with proposals and energies from a masked language model.

    A step masks a uniformly random site (position), proposes a token from the model, and accepts or rejects
    it. The target is proportional to exp(-E(x)) with E(x) = -sum over sites i of h_i(x_i) / `bodies`, where
    h_i are the model's logits at site i if it is masked. With `bodies` = 1, this is the published algorithm
    (Goyal, Dyer and Berg-Kirkpatrick 2021).

    If exactly k sites interact in each term of the true energy, the sum of the logits is k times this energy.
    The published algorithm then samples a sharpened distribution, and `bodies` = k corrects it.

    Args:
        gauge: Use the logits as returned by the model (raw), or log-probabilities (normalised) (default:
            raw). With raw logits, E changes if a constant is added to the logits of a site. With
            log-probabilities, -E is the pseudo-likelihood.
        bodies: Divide the energy by this positive number (default: 1).

    Raises:
        InputError: If the model has no conditional distributions of sites.
    """

    gauge: Literal["raw", "normalised"] = "raw"
    bodies: Positive = 1.0

    def init(self, model: SequenceModel, tokens: Tensor) -> MaskedMetropolisState:
        """Return the initial state, for which the energies of the sequences are computed.

        Args:
            model: The model.
            tokens: Start (rows, N) of each copy of the chain.

        Returns:
            Tokens and energies.
        """
        return MaskedMetropolisState(tokens, self.energy(model, tokens))

    def step(
        self, model: SequenceModel, state: MaskedMetropolisState, choose: Choose
    ) -> tuple[MaskedMetropolisState, StepInfo]:
        """Propose a token for one random site (position) of each row, and accept or reject it by the energies.

        The token is drawn from the model's distribution of the site given all other sites. A proposal of the present
        token is accepted.

        Args:
            model: The model.
            state: Tokens and energies of the rows.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            The new state, and whether each proposal was accepted, (rows,) float64.
        """
        tokens, energy = state
        rows = every_row(tokens)
        site = choose_site(tokens.shape[1], rows, choose)
        distribution = site_distribution(model, tokens, site).double().log_softmax(-1)
        proposed, present = choose(distribution, rows), tokens[rows, site]
        accepted = torch.ones_like(energy)
        moved = (proposed != present).nonzero()[:, 0]
        if not len(moved):
            return state, StepInfo(accepted)
        sequences = tokens[moved].scatter(1, site[moved, None], proposed[moved, None])
        scored = self.energy(model, sequences)
        ratio = (
            energy[moved]
            - scored
            + distribution[moved, present[moved]]
            - distribution[moved, proposed[moved]]
        )
        accept = ratio.clamp_max(0.0)
        taken = choose(torch.stack((torch.log(-torch.expm1(accept)), accept), 1), moved) == 1
        tokens, energy = tokens.clone(), energy.clone()
        tokens[moved[taken]], energy[moved[taken]] = sequences[taken], scored[taken]
        accepted[moved[~taken]] = 0.0
        return MaskedMetropolisState(tokens, energy), StepInfo(accepted)

    def energies(self, state: MaskedMetropolisState) -> Tensor:
        """Return the energies (rows,) float64 that are stored in `state`."""
        return state.energy

    def energy(self, model: SequenceModel, tokens: Tensor) -> Tensor:
        """Compute the energy E of sequences. The chain samples in proportion to exp(-E).

        Args:
            model: The model.
            tokens: Tokens (rows, N) int64.

        Returns:
            Energies E(x) (rows,) float64.
        """
        checked_model = as_model(model)
        if self.gauge == "raw" and isinstance(checked_model, Masked):
            logits = require_float_tensor(
                "token_logits", checked_model.token_logits(tokens), tuple(tokens.shape)
            )
        else:
            distributions = site_distributions(checked_model, tokens).log_softmax(-1)
            logits = distributions.gather(2, tokens[:, :, None])[:, :, 0]
        return -logits.double().sum(1) / self.bodies
