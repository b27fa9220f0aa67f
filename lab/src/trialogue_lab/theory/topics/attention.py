"""Loss of an attention layer that distinguishes same word, same topic and other topics (thesis, section 2.1.3).

By Assumption 2.1.2, a position attends with unnormalized weight beta to its own word, alpha to other words of the same
topic, and 1 to all others. The value matrix is optimal for uniform attention. It is either "block" (Theorem 2.1.2) or
"diagonal" (Definition 2.1.2).
"""

import math
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor

from trialogue.arrays import Reals, real_tensor
from trialogue.data import BertMasking, TopicModel
from trialogue.errors import InputError
from trialogue.validation import InstanceOf, check, validated
from trialogue_lab.theory.topics.values import constants

Values = Literal["block", "diagonal"]
Variant = Literal["printed", "mask", "nomask"]
Array = NDArray[np.float64]

_GRID = 241


class _AffineOutput(NamedTuple):
    """Output of the attention layer as an affine function of its attention weights.

    The output is `slope` times attention, plus `base`, plus `mask` times the attention to [MASK].
    """

    slope: float
    base: float
    mask: float


@validated
def attention_loss(
    model: InstanceOf[TopicModel],
    alpha: ArrayLike | Tensor,
    beta: ArrayLike | Tensor,
    p_mask: float = 0.15,
    p_correct: float = 0.1,
    p_random: float = 0.1,
    values: Values = "block",
    variant: Variant = "printed",
) -> Any:
    """Return the squared loss of one attention layer that predicts masked words of documents from a topic model.

    Unnormalized attention weights are `beta` for the query's word, `alpha` for other words of its topic, and
    1 otherwise (Theorems 2.1.3 and 2.1.5). Documents are infinitely long. The loss is summed over words and
    over masked positions that do not show [MASK].

    Args:
        model: Topic model.
        alpha: Non-negative attention weights to other words of the same topic. Broadcasts with `beta`.
        beta: Non-negative attention weights to the same word.
        p_mask: Probability of masking a word.
        p_correct: Probability that a masked word is kept.
        p_random: Probability that a masked word is replaced by a random word.
        values: Value matrix of the layer, "block" (see `optimal_values`) or "diagonal" (see
            `diagonal_values`).
        variant: Treatment of [MASK] positions: "mask" for the exact loss, "nomask" for the exact loss without
            attention to them, or "printed" for the published formula.

    Returns:
        Losses of the broadcast shape: a float or array, or a tensor if one of the weights is a tensor.
    """
    masking = BertMasking(p_mask=p_mask, p_correct=p_correct, p_random=p_random)
    first, second = _check_weights("alpha", alpha), _check_weights("beta", beta)
    try:
        np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise InputError(
            "beta", second.shape, f"use a shape that broadcasts with alpha of shape {first.shape}"
        ) from None
    loss = _compute_loss(model, masking, first, second, values, variant)
    if isinstance(alpha, Tensor) or isinstance(beta, Tensor):
        return real_tensor("loss", np.asarray(loss), "")
    return float(loss) if np.ndim(loss) == 0 else loss


@validated
def optimal_attention(
    model: InstanceOf[TopicModel],
    masking: InstanceOf[BertMasking],
    values: Values = "block",
    variant: Variant = "printed",
) -> tuple[float, float]:
    """Return the attention weights that minimize `attention_loss`, found numerically.

    Args:
        model: Topic model.
        masking: Masking probabilities.
        values: Value matrix of the layer, "block" (see `optimal_values`) or "diagonal" (see
            `diagonal_values`).
        variant: Treatment of [MASK] positions, as in `attention_loss`.

    Returns:
        The weights alpha to other words of the same topic and beta to the same word. For block values, the
        loss depends on gamma = ((v - 1) alpha + beta) / v only (Remark 2.1.5), and both results equal gamma.
    """
    high = math.log(1e6 * model.vocab_size)
    grid = np.linspace(-5.0, high, _GRID)

    def loss(alpha: Array | float, beta: Array | float) -> Array:
        return _compute_loss(model, masking, np.asarray(alpha), np.asarray(beta), values, variant)

    if values == "block":
        best = int(np.argmin(loss(np.exp(grid), np.exp(grid))))
        near = (grid[max(0, best - 1)], grid[min(_GRID - 1, best + 1)])
        found = minimize_scalar(
            lambda log: float(loss(math.exp(log), math.exp(log))), bounds=near, method="bounded"
        )
        gamma = math.exp(found.x)
        return gamma, gamma
    table = loss(np.exp(grid)[:, None], np.exp(grid))
    row, column = np.unravel_index(int(np.argmin(table)), table.shape)
    # The optimal alpha tends to zero for many words, so the lower bound of its logarithm is small.
    found = minimize(
        lambda logs: float(loss(math.exp(logs[0]), math.exp(logs[1]))),
        (grid[row], grid[column]),
        method="Nelder-Mead",
        bounds=((-30.0, high), (-5.0, high)),
        options={"xatol": 1e-6, "fatol": 1e-15, "maxiter": 4000},
    )
    return math.exp(found.x[0]), math.exp(found.x[1])


def _compute_loss(
    model: TopicModel, masking: BertMasking, alpha: Array, beta: Array, values: str, variant: str
) -> Array:
    read = _compute_affine_output(model, masking, values, variant)
    hidden, inside, outside = model.rates(masking)
    topics, size, tau = model.topics, model.words_per_topic, model.topics_per_document
    assert tau is not None
    keys = hidden if variant == "mask" else 0.0
    own = beta + alpha * (size - 1)
    inner = inside * (own + size * (tau - 1)) + outside * size * (topics - tau) + keys
    outer = outside * (own + size * (topics - tau - 1)) + inside * size * tau + keys

    def prediction(rate: float, mass: Array, norm: Array) -> Array:
        return read.slope * rate * mass / norm + read.base + read.mask * keys / norm

    average = own / size
    word, mate = (average, average) if values == "block" else (beta, alpha)
    # Predictions after a query of a topic of the document: for the query's word, its topic, other topics of the
    # document and absent topics. Then the same for a query of an absent topic.
    mine, near = prediction(inside, word, inner), prediction(inside, mate, inner)
    present, absent = (prediction(rate, np.ones(()), inner) for rate in (inside, outside))
    stray, around = prediction(outside, word, outer), prediction(outside, mate, outer)
    there, nowhere = (prediction(rate, np.ones(()), outer) for rate in (inside, outside))
    squares = mine**2 + (size - 1) * near**2 + size * ((tau - 1) * present**2 + (topics - tau) * absent**2)
    wrong = stray**2 + (size - 1) * around**2 + size * (tau * there**2 + (topics - tau - 1) * nowhere**2)
    correct, random = masking.p_correct, masking.p_random
    # The masked word is the query's word, another word of its topic, or a word of another topic. In the last
    # case, the query's topic is absent from the document.
    return np.asarray(
        (correct + random / (topics * size)) * (1 - 2 * mine + squares)
        + random / topics * (1 - 1 / size) * (1 - 2 * near + squares)
        + random * (tau - 1) / topics * (1 - 2 * present + squares)
        + random * (1 - tau / topics) * (1 - 2 * there + wrong)
    )


def _compute_affine_output(
    model: TopicModel, masking: BertMasking, values: str, variant: str
) -> _AffineOutput:
    """Return the output of the attention layer for a word, as an affine function of the attention to it."""
    c1, c2, c3 = constants(model, masking)
    if variant == "printed":
        return _AffineOutput(c3, -masking.p_mask * masking.p_random * c3 / model.vocab_size, 0.0)
    if values == "diagonal":
        return _AffineOutput(c3, 0.0, -c1)
    scale = c2**2 + model.vocab_size
    below, column = -(c1 * c2 + c3) / scale, (c2 * c3 - c1 * model.vocab_size) / scale
    # Words receive the attention that [MASK] does not, so `below` is multiplied by one minus the latter.
    return _AffineOutput(c3, below, column - below)


def _check_weights(field: str, values: ArrayLike | Tensor) -> Array:
    hint = "give weights of attention: finite numbers of at least 0"
    weights: Tensor = check(field, values, Annotated[Tensor, Reals(least=0)], hint)
    return weights.detach().double().cpu().numpy()
