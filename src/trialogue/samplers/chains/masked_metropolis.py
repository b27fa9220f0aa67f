"""Metropolis-Hastings on the energy of a masked language model: scores of masked sites, summed over the sites."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.oracles import Chain, Masked, SequenceModel, StepInfo, as_model
from trialogue.oracles.whole import answered, every_row
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import site_law, site_laws
from trialogue.samplers.chains.subsets import choose_site
from trialogue.validation import Positive, validated


class Scored(NamedTuple):
    """Sequences, and their energies."""

    tokens: Tensor
    """(rows, N) int64"""
    energy: Tensor
    """(rows,) float64"""


@validated
@dataclass(frozen=True)
class MaskedMetropolis(Chain[Scored]):
    """A uniformly random site is masked and redrawn; the draw is accepted by the ratio of exp(-E) and of proposals.

    E(x) = -sum over sites i of h_i(x_i) / `bodies`, h_i the logits where i is masked: section A.3 of the document on
    the distributional simplicity bias, after Goyal, Dyer and Berg-Kirkpatrick 2021. The conditionals of a distribution
    of k-body interactions give k times its energy, so that the published score (`bodies` = 1) samples a sharpened
    distribution and `bodies` = k the distribution itself; a model of several orders has no such number, and `Gibbs` is
    then right where the conditionals are those of a joint distribution. The "raw" logits are those of the model, in its
    own gauge, on which E depends; "normalised" ones are log-probabilities, and -E the pseudo-likelihood.

    The energy is kept. A proposal asks for the distribution of the site, and then for the tokens' own logits at all N
    masked sites of the sequence proposed (`Masked.token_logits`), or for nothing where it is the present one. Raises
    `InputError` for another gauge, `bodies` that are not positive, and a model without conditionals of sites.
    """

    gauge: Literal["raw", "normalised"] = "raw"
    bodies: Positive = 1.0

    def init(self, model: SequenceModel, tokens: Tensor) -> Scored:
        """Score the sequences."""
        return Scored(tokens, self.energy(model, tokens))

    def step(self, model: SequenceModel, state: Scored, choose: Choose) -> tuple[Scored, StepInfo]:
        """Propose a token for one site of every row. A proposal of the present token is accepted."""
        tokens, energy = state
        rows = every_row(tokens)
        site = choose_site(tokens.shape[1], rows, choose)
        distribution = site_law(model, tokens, site).double().log_softmax(-1)
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
        return Scored(tokens, energy), StepInfo(accepted)

    def energies(self, state: Scored) -> Tensor:
        """E(x) (rows,) float64 of the sequences."""
        return state.energy

    def energy(self, model: SequenceModel, tokens: Tensor) -> Tensor:
        """E(x) (rows,) float64 of `tokens` (rows, N): exp(-E) is what the chain leaves invariant."""
        asked = as_model(model)
        if self.gauge == "raw" and isinstance(asked, Masked):
            logits = answered("token_logits", asked.token_logits(tokens), tuple(tokens.shape))
        else:
            distributions = site_laws(asked, tokens).log_softmax(-1)
            logits = distributions.gather(2, tokens[:, :, None])[:, :, 0]
        return -logits.double().sum(1) / self.bodies
