"""Bound on the variance of masked training, from the mixing speed of a Markov chain.

The pseudolikelihood estimator fits the conditional distributions of random sets of masked positions ("blocks"). Block
dynamics is the Markov chain that resamples such a block in each step. If the chain mixes fast, the estimator is nearly
as accurate as maximum likelihood (Theorems 4.1.2 and 4.1.3 of the thesis).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue_lab.theory.masking.block_laws import BlockDistribution, block_dynamics
from trialogue_lab.theory.masking.mixing import poincare_constant
from trialogue_lab.theory.masking.pseudolikelihood import (
    fisher_information,
    pseudolikelihood_information,
)


class CovarianceBound(NamedTuple):
    """Result of testing an upper bound on the covariance of parameter estimates (Theorems 4.1.2 and 4.1.3).

    The bound is Gamma ⪯ C I^{-1}. Gamma is the asymptotic covariance of the pseudolikelihood estimate, which predicts
    masked tokens from the others. I is the Fisher information, and C the Poincaré constant of the chain that resamples
    the masked tokens. A ⪯ B means that B - A is positive semidefinite.

    Attributes:
        constant: C, which is small if the chain mixes fast (see `poincare_constant`).
        best: Smallest constant c with Gamma ⪯ c I^{-1}. The bound is tight if it is close to `constant`.
        slack: Smallest eigenvalue of C I^{-1} - Gamma. The theorem states that it is at least 0.
        information_slack: Smallest eigenvalue of Gamma^{-1} - I / C. The theorem states that it is at least
            0.
    """

    constant: float
    best: float
    slack: float
    information_slack: float


def bound_covariance(
    probabilities: Tensor, features: Tensor, distribution: BlockDistribution
) -> CovarianceBound:
    """Test an upper bound on the covariance of parameters that are estimated from masked tokens.

    The bound is Gamma ⪯ C I^{-1} (Theorems 4.1.2 and 4.1.3). The estimate maximizes the mean log-probability of masked
    tokens given the others. Gamma is its asymptotic covariance, I the Fisher information, and C the Poincaré constant
    of `block_dynamics`. The model is assumed to be correct and its parameters identifiable.

    Args:
        probabilities: Probabilities (states,) of the sequences under an exponential family p ∝ exp(theta .
            F).
        features: Features F (states, parameters) of the family.
        distribution: Distribution of the set of masked positions.

    Raises:
        InputError: If an information matrix is singular or some states cannot reach others.
    """
    information = pseudolikelihood_information(probabilities, features, distribution)
    fisher = fisher_information(probabilities, features)
    constant = poincare_constant(block_dynamics(probabilities, distribution))
    # The largest eigenvalue of I_PL^{-1/2} I I_PL^{-1/2} is the smallest c with I ⪯ c I_PL.
    factor, info = torch.linalg.cholesky_ex(information)
    fisher_factor, fisher_info = torch.linalg.cholesky_ex(fisher)
    if int(info) or int(fisher_info):
        hint = "the information is singular: drop dependent features"
        raise InputError("features", features.shape[1], hint)
    half = torch.linalg.solve_triangular(factor, fisher, upper=False)
    relative = torch.linalg.solve_triangular(factor, half.T, upper=False)
    gap = constant * torch.cholesky_inverse(fisher_factor) - torch.cholesky_inverse(factor)
    return CovarianceBound(
        constant,
        float(torch.linalg.eigvalsh(relative)[-1]),
        float(torch.linalg.eigvalsh(gap)[0]),
        float(torch.linalg.eigvalsh(information - fisher / constant)[0]),
    )
