"""Bound on the covariance of a pseudolikelihood estimator by the Poincaré constant of its chain."""

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
    """Theorems 4.1.2 and 4.1.3: Gamma ⪯ C I^{-1}.

    Attributes:
        constant: Poincaré constant C.
        best: Smallest constant that satisfies the bound. Its ratio to C measures the tightness.
        slack: Smallest eigenvalue of C I^{-1} - Gamma, non-negative if the theorem holds.
        information_slack: Smallest eigenvalue of I_PL - I / C, non-negative if the theorem holds.
    """

    constant: float
    best: float
    slack: float
    information_slack: float


def bound_covariance(
    probabilities: Tensor, features: Tensor, distribution: BlockDistribution
) -> CovarianceBound:
    """Compute Theorem 4.1.2 (weighted) or 4.1.3 (adaptive).

    C is the Poincaré constant of the block dynamics on X. The chain on (X, K) keeps K and has no finite
    constant. The theorems assume realizability and identifiable parameters.

    Args:
        probabilities: Probabilities (states,) of the model.
        features: Features (states, parameters).
        distribution: Distribution of the block.

    Raises:
        InputError: If the information matrix is singular or the chain is reducible.
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
