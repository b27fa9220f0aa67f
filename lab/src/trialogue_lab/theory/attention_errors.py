"""Errors of an attention module with approximate scores or values (thesis, section 2.2.5.6).

These lemmas are steps of the proof of Theorem 2.2.3. Activations are matrices (m, N) with one column per position.
Their errors are in the norm of `largest_column_norm`.
"""

import math

import torch
from torch import Tensor

from trialogue.validation import Count, NonNegative, Positive, validated
from trialogue_lab.models.dyck_transformer.layers import FlooredNorm


def largest_column_norm(x: Tensor) -> float:
    """Return the largest Euclidean norm of a column (Definition 2.2.6, which says "row").

    Args:
        x: Matrix (m, N).
    """
    return float(torch.linalg.vector_norm(x, dim=0).max())


@torch.no_grad()
def attention_module(x: Tensor, *, value: Tensor, key: Tensor, query: Tensor, floor: float) -> Tensor:
    """Return LN_C(W_V X softmax((W_K X)^T W_Q X)), with a softmax over keys (Definition 2.2.7).

    Args:
        x: Activations X (m, N).
        value: Value weights W_V (m, m).
        key: Key weights W_K (m_a, m).
        query: Query weights W_Q (m_a, m).
        floor: Constant C of the norm LN_C (see `FlooredNorm`).

    Returns:
        Normalized attention output (m, N).
    """
    attended = value @ x @ ((key @ x).T @ (query @ x)).softmax(0)
    normed: Tensor = FlooredNorm(len(value), floor, gain=False)(attended.T)
    return normed.T


@validated
def softmax_error_bound(score_error: NonNegative) -> float:
    """Return an upper bound on the sum of absolute errors of a softmax, exp(2 eps) - 1 (Lemma 2.2.8).

    Args:
        score_error: Largest absolute error eps of a score.
    """
    return math.expm1(2 * score_error)


@validated
def attention_error_bound(
    weight_error: NonNegative,
    value_error: NonNegative,
    largest_value: NonNegative,
    floor: Positive | None = None,
) -> float:
    """Return an upper bound on the error of an attention output, eps_1 |V| + eps_2 (Lemma 2.2.11).

    After the norm LN_C the bound is 2 / C times as large, by Lemma 2.2.10.

    Args:
        weight_error: Largest sum eps_1 of absolute errors of the attention weights of a query.
        value_error: Largest error eps_2 of a value vector.
        largest_value: Largest norm |V| of an exact value vector.
        floor: Constant C of the norm, or None for the output before the norm.
    """
    bound = weight_error * largest_value + value_error
    return bound if floor is None else 2 * bound / floor


@validated
def attention_lipschitz_bound(layers: Count, floor: Positive) -> float:
    """Return a Lipschitz constant of the attention module, 200 L^2 / C (Lemma 2.2.13).

    It holds for weights of spectral norm at most 1, and inputs whose columns have norm at most 4 L.

    Args:
        layers: Number L of layers of the target transformer.
        floor: Constant C of the norm.
    """
    return 200 * layers**2 / floor


@validated
def composition_error_bound(
    outer_error: NonNegative, inner_error: NonNegative, outer_lipschitz: NonNegative, inner_norm: NonNegative
) -> float:
    """Return an upper bound on the relative error of a composition of two approximations (Lemma 2.2.5, corrected).

    The bound is lambda_1 eps_2 + lambda_2 eps_1 + eps_1 eps_2, with index 1 for the outer function. The printed
    statement exchanges eps_1 and eps_2.

    Args:
        outer_error: Relative error eps_1 of the outer approximation.
        inner_error: Relative error eps_2 of the inner approximation.
        outer_lipschitz: Lipschitz constant lambda_1 of the exact outer function.
        inner_norm: Largest ratio lambda_2 of the norms of output and input of the exact inner function.
    """
    return outer_lipschitz * inner_error + inner_norm * outer_error + outer_error * inner_error
