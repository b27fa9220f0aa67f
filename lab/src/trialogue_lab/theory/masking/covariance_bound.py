"""Upper bound on the covariance of a pseudolikelihood estimator from the Poincaré constant of block dynamics.

The pseudolikelihood estimator fits the conditional distributions of random blocks of masked sites. Block
dynamics is the Markov chain that resamples such a block in each step. If the chain mixes fast, the estimator
is nearly as accurate as maximum likelihood (Theorems 4.1.2 and 4.1.3 of the thesis).
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
    """Terms of the bound Gamma ⪯ C I^{-1} of Theorems 4.1.2 and 4.1.3.

    Gamma is the asymptotic covariance of the pseudolikelihood estimator, I is the Fisher information, and
    I_PL = Gamma^{-1} is the information of the pseudolikelihood. A ⪯ B means that B - A is positive
    semidefinite.

    Attributes:
        constant: Poincaré constant C of the block dynamics.
        best: Smallest constant c with Gamma ⪯ c I^{-1}. The bound is tight if it is close to `constant`.
        slack: Smallest eigenvalue of C I^{-1} - Gamma; non-negative if the theorem holds.
        information_slack: Smallest eigenvalue of I_PL - I / C; non-negative if the theorem holds.
    """

    constant: float
    best: float
    slack: float
    information_slack: float


def bound_covariance(
    probabilities: Tensor, features: Tensor, distribution: BlockDistribution
) -> CovarianceBound:
    """Compute both sides of the bound Gamma ⪯ C I^{-1} on the covariance of the pseudolikelihood estimator.

    The bound is Theorem 4.1.2 if the distribution of the masked block is the same in every state, and Theorem
    4.1.3 if it depends on the state. C is the Poincaré constant of the block dynamics on states. The theorems
    assume that the model contains the distribution of the data and that its parameters are identifiable.

    Args:
        probabilities: Probabilities (states,) of an exponential family.
        features: Features (states, parameters) of the family.
        distribution: Distribution of the masked block.

    Raises:
        InputError: If an information matrix is singular or the chain is reducible.
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
