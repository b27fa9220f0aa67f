"""Why the chain bounds the learning: the covariance of a pseudolikelihood against its chain's Poincaré constant."""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue_lab.theory.masking.block_laws import BlockLaw, block_dynamics
from trialogue_lab.theory.masking.mixing import poincare_constant
from trialogue_lab.theory.masking.pseudolikelihood import (
    fisher_information,
    pseudolikelihood_information,
)


class CovarianceBound(NamedTuple):
    """Theorems 4.1.2 and 4.1.3: Gamma ⪯ C I^{-1}.

    `constant` is C, `best` the smallest number that could stand for it: their ratio says how tight the bound is.
    `slack` is the smallest eigenvalue of C I^{-1} - Gamma and `information_slack` that of I_PL - I / C; neither is
    negative where the theorem holds.
    """

    constant: float
    best: float
    slack: float
    information_slack: float


def bound_covariance(probabilities: Tensor, features: Tensor, law: BlockLaw) -> CovarianceBound:
    """Theorems 4.1.2 and 4.1.3 for the law `probabilities` (states,) with `features` (states, parameters)."""
    information = pseudolikelihood_information(probabilities, features, law)
    fisher = fisher_information(probabilities, features)
    constant = poincare_constant(block_dynamics(probabilities, law))
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
