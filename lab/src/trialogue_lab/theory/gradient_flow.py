"""Gradient flow of two factored layers: why the first waits for the last, and when it starts to move.

The model of one dimension of the document on the distributional simplicity bias (equations 7 to 13, appendix B): tokens
x_0, x_1, ..., x_L are numbers, and x_0 is predicted by sum over j of a_j (x_j + lambda_j^2) with lambda = B x of the
others, under half the mean squared error. `last` is a = A2_0 (L,), `first` is B = A1 (L, L). All is float64.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.errors import InputError
from trialogue.validation import NonNegative, validated

_SYMMETRIC = 1e-10


class Weights(NamedTuple):
    """Weights of the two layers, or their derivatives in time: `last` (L,), `first` (L, L)."""

    last: Tensor
    first: Tensor


class SampleFlow:
    """The flow on samples `target` (n,) of x_0 and `others` (n, L) of the rest: means of equations 8 and 9.

    Raises `InputError` for samples that do not go together.
    """

    @validated
    def __init__(
        self, target: Annotated[Tensor, Reals("n")], others: Annotated[Tensor, Reals("n L")]
    ) -> None:
        if len(target) != len(others):
            hint = "give as many numbers x_0 (n,) as rows (n, L) of the other tokens"
            raise InputError("others", tuple(others.shape), hint)
        self._target, self._others = target.double(), others.double()
        self.size = others.shape[1]

    def __call__(self, weights: Weights) -> Weights:
        """d a_j = mean of r (x_j + lambda_j^2), d B_kl = mean of 2 r a_k lambda_k x_l, with the residual r."""
        hidden = self._others @ weights.first.T
        features = self._others + hidden.square()
        residual = (self._target - features @ weights.last)[:, None]
        count = len(residual)
        return Weights(
            (residual * features).sum(0) / count,
            2 * weights.last[:, None] * ((residual * hidden).T @ self._others) / count,
        )

    def stability_matrix(self, last: Tensor) -> Tensor:
        """M (L, L) with M_lm = mean of r x_l x_m at B = 0: row k of B then moves as 2 a_k M B_k.

        The right reading of equation 13, whose factor 2 is missing and whose diagonal direction is not invariant.
        """
        residual = self._target - self._others @ last
        return (residual[:, None] * self._others).T @ self._others / len(residual)


class GaussianFlow:
    """The flow on Gaussian tokens of mean zero: equations 10 and 11 with all moments in closed form.

    `covariance` (L + 1, L + 1) is that of x_0, ..., x_L. Raises `InputError` unless it is symmetric and that of the
    other tokens positive definite.
    """

    @validated
    def __init__(self, covariance: Annotated[Tensor, Reals("tokens tokens")]) -> None:
        matrix = covariance.double()
        skew = float((matrix - matrix.T).abs().max())
        least = float(torch.linalg.eigvalsh(matrix).min())
        if len(matrix) < 2 or skew > _SYMMETRIC * float(matrix.abs().max()) or not least > 0:
            hint = "give a symmetric matrix (L + 1, L + 1), positive definite, L at least 1"
            raise InputError("covariance", f"matrix with least eigenvalue {least:g}", hint)
        self.target_variance = float(matrix[0, 0])
        self.correlation, self.others = matrix[0, 1:], matrix[1:, 1:]
        self.size = len(self.others)

    def __call__(self, weights: Weights) -> Weights:
        """Equations 10 and 11: with G = B C B^T, E[l_j^2 l_k^2] = G_jj G_kk + 2 G_jk^2 and the like."""
        last, first = weights
        mixed = first @ self.others
        gram = mixed @ first.T
        squares = gram.diagonal()
        fourth = squares[:, None] * squares + 2 * gram.square()
        # Of sum over j of a_j E[l_j^2 x_l l_k], in k and l.
        third = (last @ squares) * mixed + 2 * (gram * last) @ mixed
        return Weights(
            self.correlation - self.others @ last - fourth @ last,
            -2 * last[:, None] * third,
        )

    def two_body(self, start: Tensor, time: float) -> Tensor:
        """a(t) (L,) from a(0) = `start` where B = 0: equation 12 and its solution, mode by mode of the covariance."""
        rates, modes = torch.linalg.eigh(self.others)
        fixed = modes.T @ self.correlation / rates
        return modes @ (fixed + (modes.T @ start - fixed) * torch.exp(-rates * time))

    @validated
    def fixed_point(self, decay: NonNegative = 0.0) -> Tensor:
        """(C + decay)^-1 h (L,): what a comes to where B is zero; without decay the conditional mean of x_0."""
        shift = decay * torch.eye(self.size, dtype=torch.float64)
        return torch.linalg.solve(self.others + shift, self.correlation)

    def loss(self, weights: Weights) -> float:
        """Half the expected squared error."""
        last = weights.last
        linear = self.target_variance - 2 * last @ self.correlation + last @ self.others @ last
        return float(linear + self.excess(weights)) / 2

    def excess(self, weights: Weights) -> Tensor:
        """What the first layer adds to the squared error: sum of a_j a_k (G_jj G_kk + 2 G_jk^2), G = B C B^T.

        It is E[(sum of a_j lambda_j^2)^2], never negative (appendix B, whose C must be B C B^T and whose argument by
        entries is none), and of degree 4 in B: with any decay of weights B = 0 is the only stable point.
        """
        gram = weights.first @ self.others @ weights.first.T
        squares = gram.diagonal()
        return weights.last @ (squares[:, None] * squares + 2 * gram.square()) @ weights.last


@validated
def integrate(
    flow: SampleFlow | GaussianFlow,
    start: Weights,
    times: Annotated[Tensor, Reals("times", least=0)],
    decay: NonNegative = 0.0,
    tolerance: float = 1e-10,
) -> list[Weights]:
    """The weights at `times` (increasing, from 0 on) along `flow` from `start`, less `decay` times the weights.

    By a Runge-Kutta method of order 8 with relative errors of `tolerance` a step. Raises `InputError` for weights of
    another size, times that do not increase, and where the flow diverges before the last one.
    """
    size = flow.size
    last, first = (part.double() for part in start)
    if last.shape != (size,) or first.shape != (size, size):
        hint = f"{size} other tokens need weights of shapes ({size},) and ({size}, {size})"
        raise InputError("start", (tuple(last.shape), tuple(first.shape)), hint)
    moments = times.double()
    if bool((moments.diff() <= 0).any()):
        raise InputError("times", moments.tolist(), "give increasing times from 0 on")

    def unpacked(flat: np.ndarray) -> Weights:
        numbers = torch.from_numpy(flat.copy())
        return Weights(numbers[:size], numbers[size:].view(size, size))

    def derivative(time: float, flat: np.ndarray) -> np.ndarray:
        del time
        moved = flow(unpacked(flat))
        return torch.cat((moved.last, moved.first.flatten())).numpy() - decay * flat

    solved = solve_ivp(
        derivative,
        (0.0, float(moments[-1])),
        torch.cat((last, first.flatten())).numpy(),
        "DOP853",
        moments.numpy(),
        rtol=tolerance,
        atol=tolerance * 1e-3,
    )
    if not solved.success or not np.isfinite(solved.y).all():
        hint = "the flow diverges before this: use smaller weights or times"
        raise InputError("times", float(moments[-1]), hint)
    return [unpacked(flat) for flat in solved.y.T]


def growth_rate(last: Tensor, stability: Tensor) -> float:
    """The rate at which the first layer grows from almost zero: 2 max over k of the greatest eigenvalue of a_k M.

    `stability` is M (L, L), symmetric. Above zero B = 0 is unstable.
    """
    eigenvalues = torch.linalg.eigvalsh(stability)
    return 2 * float((last[:, None] * eigenvalues).max())


def printed_stability(last: Tensor, stability: Tensor) -> Tensor:
    """G (L, L) of equation 13 as printed, G_lk = a_k M_lk: said to be negative definite where B = 0 is stable."""
    return stability * last
