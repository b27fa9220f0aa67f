"""Gradient flow of a two-layer model, which explains why the first layer learns after the last.

Gradient flow is gradient descent with infinitely small steps. The model predicts a number x_0 from L other
numbers x by sum_j a_j (x_j + lambda_j^2) with lambda = B x, and minimizes half the mean squared error. Its
weights are a (L,) of the last layer and B (L, L) of the first layer. Source: document on the distributional
simplicity bias, equations 7 to 13 and appendix B, where a is A2_0 and B is A1.
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
    """Weights of the model sum_j a_j (x_j + lambda_j^2) with lambda = B x, or their time derivatives.

    Attributes:
        last: Weights a (L,) of the last layer.
        first: Weights B (L, L) of the first layer.
    """

    last: Tensor
    first: Tensor


class SampleFlow:
    """Gradient flow (infinitely small gradient steps) of a two-layer model on given samples.

    The model predicts x_0 from L other numbers x by sum_j a_j (x_j + lambda_j^2) with lambda = B x. Call an
    instance with weights a (L,) and B (L, L) to get their time derivatives (equations 8 and 9).

    Args:
        target: Samples of x_0, shape (n,).
        others: Samples of x, shape (n, L).

    Raises:
        InputError: If the numbers of samples differ.
    """

    @validated
    def __init__(
        self, target: Annotated[Tensor, Reals("n")], others: Annotated[Tensor, Reals("n L")]
    ) -> None:
        if len(target) != len(others):
            hint = "give one row (L,) for each of the samples of x_0"
            raise InputError("others", tuple(others.shape), hint)
        self._target, self._others = target.double(), others.double()
        self.size = others.shape[1]

    def __call__(self, weights: Weights) -> Weights:
        """Return the time derivatives of the weights.

        With the prediction error r, they are d a_j = mean(r (x_j + lambda_j^2)) and d B_kl = mean(2 r a_k lambda_k
        x_l).

        Args:
            weights: Weights a and B of the two layers.
        """
        hidden = self._others @ weights.first.T
        features = self._others + hidden.square()
        residual = (self._target - features @ weights.last)[:, None]
        count = len(residual)
        return Weights(
            (residual * features).sum(0) / count,
            2 * weights.last[:, None] * ((residual * hidden).T @ self._others) / count,
        )

    def stability_matrix(self, last: Tensor) -> Tensor:
        """Return the matrix M that determines whether a first layer close to zero grows.

            M_lm = mean(r x_l x_m), with the prediction error r at B = 0

        If the first layer B is small, its row k has the time derivative 2 a_k M B_k. This corrects equation
        13.

        Args:
            last: Weights a (L,) of the last layer.

        Returns:
            Matrix (L, L) float64.
        """
        residual = self._target - self._others @ last
        return (residual[:, None] * self._others).T @ self._others / len(residual)


class GaussianFlow:
    """Gradient flow (infinitely small gradient steps) of a two-layer model on Gaussian data.

    The model predicts x_0 from L other numbers x by sum_j a_j (x_j + lambda_j^2) with lambda = B x. Call an
    instance with weights a (L,) and B (L, L) to get their expected time derivatives (equations 10 and 11).

    Args:
        covariance: Covariance of x_0, ..., x_L, shape (L + 1, L + 1), symmetric and positive definite. All
            means are zero.

    Raises:
        InputError: If the matrix is not symmetric and positive definite.
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
        """Return the time derivatives of the weights (equations 10 and 11).

        They use the moments E[lambda_j^2 lambda_k^2] = G_jj G_kk + 2 G_jk^2 with G = B C B^T and the
        covariance C of the other tokens.

        Args:
            weights: Weights a and B of the two layers.
        """
        last, first = weights
        mixed = first @ self.others
        gram = mixed @ first.T
        squares = gram.diagonal()
        fourth = squares[:, None] * squares + 2 * gram.square()
        # This is sum over j of a_j E[l_j^2 x_l l_k], in k and l.
        third = (last @ squares) * mixed + 2 * (gram * last) @ mixed
        return Weights(
            self.correlation - self.others @ last - fourth @ last,
            -2 * last[:, None] * third,
        )

    def two_body_solution(self, start: Tensor, time: float) -> Tensor:
        """Return the last layer's weights a(t) at time t if the first layer is zero (equation 12).

        Without the first layer the model is linear. With the covariance C of the inputs and their covariance h with the
        target, a(t) solves da/dt = h - C a.

        Args:
            start: Initial weights a(0), shape (L,).
            time: Time t.

        Returns:
            Weights a(t), shape (L,).
        """
        rates, modes = torch.linalg.eigh(self.others)
        fixed = modes.T @ self.correlation / rates
        return modes @ (fixed + (modes.T @ start - fixed) * torch.exp(-rates * time))

    @validated
    def fixed_point(self, decay: NonNegative = 0.0) -> Tensor:
        """Return the weights of the last layer after infinite time, if the first layer is zero.

        It is (C + decay)^-1 h, where C is the covariance of the other tokens and h their covariance with x_0.
        Without decay, the model then predicts the conditional mean of x_0.

        Args:
            decay: Weight decay.

        Returns:
            Weights a (L,).
        """
        shift = decay * torch.eye(self.size, dtype=torch.float64)
        return torch.linalg.solve(self.others + shift, self.correlation)

    def loss(self, weights: Weights) -> float:
        """Return half the expected squared error of the model with the given weights."""
        last = weights.last
        linear = self.target_variance - 2 * last @ self.correlation + last @ self.others @ last
        return float(linear + self.excess(weights)) / 2

    def excess(self, weights: Weights) -> Tensor:
        """Return the expected square of the first layer's contribution to the prediction.

            E[(sum_j a_j lambda_j^2)^2] = sum_jk a_j a_k (G_jj G_kk + 2 G_jk^2), with G = B C B^T

        The prediction is sum_j a_j (x_j + lambda_j^2) with lambda = B x, where B are the weights of the first layer and
        C is the covariance of the inputs x. The first layer increases the expected squared error by this number.
        Appendix B of the paper prints C instead of B C B^T.

        Args:
            weights: Weights a and B of the two layers.

        Returns:
            Scalar tensor.
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
    """Return the weights at given times, by a Runge-Kutta method of order 8.

    Args:
        flow: Function that returns the time derivative of the weights.
        start: Initial weights.
        times: Increasing times from 0 on.
        decay: Weight decay. `decay` times the weights is subtracted from the time derivative.
        tolerance: Relative error of a step.

    Returns:
        Weights at each time.

    Raises:
        InputError: If the shapes do not match, times do not increase, or the flow diverges.
    """
    size = flow.size
    last, first = (part.double() for part in start)
    if last.shape != (size,) or first.shape != (size, size):
        hint = f"{size} other tokens need weights of shapes ({size},) and ({size}, {size})"
        raise InputError("start", (tuple(last.shape), tuple(first.shape)), hint)
    moments = times.double()
    if bool((moments.diff() <= 0).any()):
        raise InputError("times", moments.tolist(), "give increasing times from 0 on")

    def unpack(flat: np.ndarray) -> Weights:
        numbers = torch.from_numpy(flat.copy())
        return Weights(numbers[:size], numbers[size:].view(size, size))

    def derivative(time: float, flat: np.ndarray) -> np.ndarray:
        del time
        moved = flow(unpack(flat))
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
        hint = "the flow diverges before this time. Use smaller weights or times"
        raise InputError("times", float(moments[-1]), hint)
    return [unpack(flat) for flat in solved.y.T]


def growth_rate(last: Tensor, stability: Tensor) -> float:
    """Return the rate at which a first layer close to zero grows. At time t, it is proportional to exp(rate t).

    The rate is 2 times the largest eigenvalue of a_k M over all k. If it is positive, a first layer of zero is
    unstable.

    Args:
        last: Weights a of the last layer, shape (L,).
        stability: Symmetric matrix M of `SampleFlow.stability_matrix`, shape (L, L).
    """
    eigenvalues = torch.linalg.eigvalsh(stability)
    return 2 * float((last[:, None] * eigenvalues).max())


def printed_stability(last: Tensor, stability: Tensor) -> Tensor:
    """Return the published matrix G_lk = a_k M_lk for judging whether a first layer of zero is stable (equation 13).

    The paper states that a first layer of zero is stable only if G is negative definite. This is not correct. See
    `growth_rate` for the correct criterion.

    Args:
        last: Weights a of the last layer, shape (L,).
        stability: Symmetric matrix M of `SampleFlow.stability_matrix`, shape (L, L).

    Returns:
        Matrix G (L, L).
    """
    return stability * last
