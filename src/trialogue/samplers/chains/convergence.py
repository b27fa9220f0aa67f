"""Whether chains have forgotten where they started, by the estimates of the library ArviZ."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError
from trialogue.extras import from_extra

R_HAT = 1.1
"""What R-hat is at most where chains have mixed: the bound of Gelman and Rubin (1992)."""
DRIFT = 3.0
"""So many standard errors of the mean may be between two halves of what is stationary."""
_FEWEST = 4


class Convergence(NamedTuple):
    """What the values of chains after their first half say: Vehtari et al. (2021) for the first two numbers."""

    effective_sample_size: float
    """of all chains together, in bulk"""
    r_hat: float
    """split, of ranks: one where chains cannot be told apart; NaN where no value ever changes"""
    drift: float
    """mean of the last quarter of the values less that of the quarter before it"""
    drift_error: float
    """its standard error over chains; NaN of one chain"""

    @property
    def mixed(self) -> bool:
        """Whether R-hat is at most `R_HAT`, and the drift at most `DRIFT` standard errors."""
        drifts = not math.isnan(self.drift_error) and abs(self.drift) > DRIFT * self.drift_error
        return self.r_hat <= R_HAT and not drifts


def convergence(values: Tensor) -> Convergence:
    """Judge chains by a function of their states, such as the energy: `values` (times, chains), at equal distances.

    The first half is left out, as what may depend on the start. Raises `InputError` for fewer than eight times, and for
    values that are not finite, and without the extra `chains`.
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
    """Return the effective sample size in bulk and the R-hat of `values` (chains, times), of at least four times.

    Raises:
        InputError: If the extra `chains` is not installed.
    """
    # Imported here because loading it takes as long as the rest of a command.
    statistics = from_extra("arviz_stats.base", "chains").array_stats
    with np.errstate(invalid="ignore", divide="ignore"):
        size = float(statistics.ess(values, chain_axis=0, draw_axis=1))
        return size, float(statistics.rhat(values, chain_axis=0, draw_axis=1))
