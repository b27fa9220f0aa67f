"""Exact distributions of iterative refinement, in which every pass samples all tokens independently.

Given the current sequence x, each token y_i has a distribution g_i(y_i | x). A pass maps a distribution mu to
sum_x mu(x) prod_i g_i(y_i | x).
"""

import torch
from torch import Tensor

from trialogue.errors import InputError, require_choice
from trialogue.oracles import Masked, as_model, enumerate_sequences
from trialogue.oracles.whole import require_float_tensor
from trialogue.probabilities import validate_probabilities
from trialogue.validation import Count, Natural, check

MOST_STATES = 2**17
"""Maximum number of sequences of one length."""
_ENTRIES_AT_ONCE = 2**22


class ParallelSteps:
    """Map from the distribution of a token sequence to its distribution after one refinement pass.

    A pass samples all N tokens independently, given the current sequence. Sequences are in the order of
    `itertools.product`.

    Args:
        sites: Distributions (V^N, N, V) of the N tokens given every sequence. They may sum to less than one.

    Raises:
        InputError: If `sites` has another shape or is not a set of such probabilities.
    """

    def __init__(self, sites: Tensor) -> None:
        if sites.ndim != 3 or len(sites) != sites.shape[2] ** sites.shape[1]:
            raise InputError("sites", tuple(sites.shape), "use the shape (vocab ** sites, sites, vocab)")
        if not bool((sites >= 0).all() & (sites.sum(2) <= 1 + 1e-6).all()):
            raise InputError("sites", tuple(sites.shape), "give probabilities that sum to at most one")
        half = sites.shape[1] // 2
        self._halves = (
            compute_product_distributions(sites[:, :half]),
            compute_product_distributions(sites[:, half:]),
        )

    def __call__(self, distribution: Tensor) -> Tensor:
        """Return the distribution (V^N,) after one pass from `distribution` (V^N,)."""
        left, right = self._halves
        return ((left * distribution[:, None]).T @ right).flatten()


def compute_refinement_distributions(
    model: Masked, sites: int, steps: int, start: str | Tensor = "mask"
) -> Tensor:
    """Compute the exact distributions of a token sequence after each pass of refinement.

    A pass samples all tokens independently, given the current sequence. The model's method `refined_log_probs` returns
    the distribution of each token. By default, it predicts each token from all others.

    Args:
        model: The model that predicts the tokens, with a vocabulary of V tokens.
        sites: Number N of tokens.
        steps: Number of passes.
        start: Initial distribution: "random" for uniform, "mask" for a pass from masked tokens, or probabilities
            (V^N,).

    Returns:
        Distributions (steps + 1, V^N), float64, after 0, ..., `steps` passes.

    Raises:
        InputError: If there are more than `MOST_STATES` sequences or an argument is invalid.
    """
    oracle = as_model(model)
    if not isinstance(oracle, Masked):
        raise InputError("model", type(model).__name__, "use a masked model for refinement")
    number, vocab = check("sites", sites, Count), int(oracle.vocab_size)
    if vocab**number > MOST_STATES:
        hint = f"{vocab}^{number} sequences are more than {MOST_STATES}: use fewer sites"
        raise InputError("sites", sites, hint)
    distributions = [_make_initial_distribution(oracle, number, start)]
    if check("steps", steps, Natural):
        at_once = max(1, _ENTRIES_AT_ONCE // (number * vocab**2))
        states = enumerate_sequences(vocab, number).split(at_once)
        step = ParallelSteps(torch.cat([_predict_site_distributions(oracle, part, False) for part in states]))
        for _ in range(steps):
            distributions.append(step(distributions[-1]))
    return torch.stack(distributions)


def compute_divergence_and_variation(truth: Tensor, distribution: Tensor) -> tuple[float, float]:
    """Return the KL divergence in nats and the total variation distance between two distributions.

    Args:
        truth: Probabilities (states,).
        distribution: Probabilities (states,), which may sum to less than one. The missing mass counts as one additional
            outcome.

    Returns:
        The divergence from `truth` to `distribution`, and the total variation distance.
    """
    truth = validate_probabilities("truth", truth, tuple(truth.shape))
    positive = truth > 0
    terms = truth[positive] * (truth[positive].log() - distribution[positive].log())
    missing = max(0.0, 1 - float(distribution.sum()))
    return max(0.0, float(terms.sum())), (float((truth - distribution).abs().sum()) + missing) / 2


def _make_initial_distribution(model: Masked, sites: int, start: str | Tensor) -> Tensor:
    """Return the distribution (V^N,) float64 before the first pass."""
    states = int(model.vocab_size) ** sites
    if isinstance(start, Tensor):
        return validate_probabilities("start", start, (states,))
    if require_choice("start", start, ("mask", "random")) == "random":
        return torch.full((states,), 1 / states, dtype=torch.float64)
    first = _predict_site_distributions(model, torch.zeros(1, sites, dtype=torch.int64), True)
    return compute_product_distributions(first)[0]


def _predict_site_distributions(model: Masked, tokens: Tensor, masked: bool) -> Tensor:
    """Return the predicted distributions (rows, N, V) of all tokens.

    Predictions use the current `tokens`, or only masks if `masked` is true.
    """
    distributions = model.refined_log_probs(tokens, torch.full_like(tokens, masked, dtype=torch.bool))
    return (
        require_float_tensor("refined_log_probs", distributions, (*tokens.shape, int(model.vocab_size)))
        .double()
        .exp()
    )


def compute_product_distributions(sites: Tensor) -> Tensor:
    """Return the joint distributions of independent tokens.

    Args:
        sites: Distributions (rows, k, V) of the k tokens.

    Returns:
        Distributions (rows, V^k) of the sequences, in the order of `itertools.product`. For k = 0, all entries are 1.
    """
    product = torch.ones(len(sites), 1, dtype=torch.float64)
    for site in sites.double().unbind(1):
        product = (product[:, :, None] * site[:, None, :]).flatten(1)
    return product
