"""Convergence diagnostics of Markov chains, computed by ArviZ."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError
from trialogue.extras import from_extra

R_HAT = 1.1
"""Largest R-hat of chains that have mixed (Gelman and Rubin 1992)."""
DRIFT = 3.0
"""Largest drift of chains that have mixed, in standard errors."""
_FEWEST = 4


class Convergence(NamedTuple):
    """Convergence diagnostics of several chains, computed from the second half of their values (Vehtari et al. 2021).

    The drift compares two parts of these values in time, because a change of their mean shows that the chains have not
    converged.

    Attributes:
        effective_sample_size: Bulk effective sample size of all chains together.
        r_hat: Rank-normalised split R-hat, near 1 if chains agree. NaN if the values are constant.
        drift: Mean of the last quarter of the values minus the mean of the third quarter.
        drift_error: Standard error of `drift` over chains. NaN for a single chain.
    """

    effective_sample_size: float
    r_hat: float
    drift: float
    drift_error: float

    @property
    def mixed(self) -> bool:
        """Whether the chains appear to have converged, by R-hat (at most 1.1) and drift (at most 3 standard errors)."""
        drifts = not math.isnan(self.drift_error) and abs(self.drift) > DRIFT * self.drift_error
        return self.r_hat <= R_HAT and not drifts


def convergence(values: Tensor) -> Convergence:
    """Compute convergence diagnostics of chains from a function of their states, such as the energy.

    The first half of the values is discarded because it may depend on the start.

    Args:
        values: Values (times, chains) at equally spaced times.

    Returns:
        The diagnostics of the second half.

    Raises:
        InputError: If there are fewer than eight times, values are not finite, or the extra `chains` is not installed.
    """
    table = real_tensor("values", values, "give values (times, chains)")
    if table.ndim != 2 or len(table) < 2 * _FEWEST or not table.shape[1]:
        hint = f"give values (times, chains) of at least {2 * _FEWEST} times"
        raise InputError("values", tuple(table.shape), hint)
    if not bool(table.isfinite().all()):
        raise InputError("values", float(table[~table.isfinite()][0]), "give finite values")
    kept = table[len(table) // 2 :].T.cpu().numpy()
    size, r_hat = size_and_r_hat(kept)
    half = kept.shape[1] // 2
    moved = kept[:, -half:].mean(1) - kept[:, -2 * half : -half].mean(1)
    chains = len(moved)
    error = float(moved.std(ddof=1)) / math.sqrt(chains) if chains > 1 else math.nan
    return Convergence(size, r_hat, float(moved.mean()), error)


def size_and_r_hat(values: NDArray[np.float64]) -> tuple[float, float]:
    """Compute the bulk effective sample size and the rank-normalised split R-hat of chains (Vehtari et al. 2021).

    Args:
        values: Values (chains, times) at four or more times.

    Returns:
        Effective sample size of all chains together, and R-hat.

    Raises:
        InputError: If the extra `chains` is not installed.
    """
    # Imported here because loading it takes as long as the rest of a command.
    statistics = from_extra("arviz_stats.base", "chains").array_stats
    with np.errstate(invalid="ignore", divide="ignore"):
        size = float(statistics.ess(values, chain_axis=0, draw_axis=1))
        return size, float(statistics.rhat(values, chain_axis=0, draw_axis=1))
