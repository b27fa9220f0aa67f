"""Weighted samples: effective sample size, accepted mass and resampling.

A properly weighted sampler draws x with a weight w such that E[w f(x)] is the sum of p(x) V(x) f(x) for any
f. Many weighted samples then represent the distribution proportional to p(x) V(x). Samples that were not
accepted have weight zero.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue.samplers.prefix.output.samples import Samples
from trialogue.validation import Count, validated


def effective_sample_size(log_weights: Tensor) -> float:
    """Return the effective sample size (sum w)^2 / sum w^2 (Kish 1965).

    Args:
        log_weights: Logarithms (n,) of the weights. -inf means weight zero.

    Returns:
        A number from 1 to n, or 0 if all weights are zero.

    Raises:
        InputError: If a weight is NaN or infinite.

    Example:
        >>> import torch
        >>> from trialogue.samplers import effective_sample_size
        >>> effective_sample_size(torch.tensor([0.0, 0.0, -torch.inf]))
        2.0
    """
    log_weights = real_tensor("log_weights", log_weights, "give logarithms of weights (n,)").flatten()
    wrong = log_weights.isnan() | (log_weights == math.inf)
    if bool(wrong.any()):
        raise InputError("log_weights", float(log_weights[wrong][0]), "use finite numbers, or -inf for zero")
    if not bool((log_weights > -math.inf).any()):
        return 0.0
    return math.exp(float(2 * log_weights.logsumexp(0) - (2 * log_weights).logsumexp(0)))


def effective_sample_sizes(samples: Samples) -> Tensor:
    """Return the effective sample size of the weighted samples of each prompt.

    Args:
        samples: Samples of a weighted sampler.

    Returns:
        Effective sample sizes (prompts,) float64, 0 for a prompt without accepted samples.
    """
    sizes = [effective_sample_size(log_weights) for _, log_weights in _by_prompt(samples)]
    return torch.tensor(sizes, dtype=torch.float64)


def log_accepted_masses(samples: Samples) -> Tensor:
    """Return the logarithm of the mean importance weight of the samples of each prompt.

    For properly weighted samplers (`MaskedDecoding`, `WeightedRejection`, `SequentialMonteCarlo`), the mean
    weight is an unbiased estimate of the sum of p(x) V(x) over complete sequences x, where p is the model and
    V the verifier. For values of 0 and 1, this is the probability that the model satisfies the constraint.
    For `Ancestral` sampling, it is the share of accepted samples.

    For other samplers, such as `Rejection` and `AdaptiveRejection`, the result does not estimate this sum. A
    budget such as `max_queries` that stops samples causes a bias.

    Args:
        samples: Samples of one or several prompts.

    Returns:
        Logarithms (prompts,) float64, -inf for a prompt without accepted samples.
    """
    means = [
        log_weights.logsumexp(0) - math.log(max(len(log_weights), 1))
        for _, log_weights in _by_prompt(samples)
    ]
    return torch.stack(means) if means else torch.zeros(0, dtype=torch.float64)


def draws(log_weights: Tensor, num: int, seed: int, prompt: int) -> Tensor:
    """Draw indices of samples in proportion to their weights, with replacement.

    Args:
        log_weights: Logarithms (n,) of the weights.
        num: Number of draws.
        seed: Seed of the random numbers.
        prompt: Index of the prompt, whose random stream is independent of other prompts.

    Returns:
        Indices (num,) int64.

    Raises:
        InputError: If all weights are zero.
    """
    if not bool((log_weights > -math.inf).any()):
        hint = f"all samples of prompt {prompt} have weight zero; draw more samples, or raise the budget"
        raise InputError("log_weight", -math.inf, hint)
    weights = log_weights.double().softmax(0).numpy()
    chosen = numpy_generator(seed, "resampled", prompt).choice(len(weights), size=num, p=weights)
    return torch.from_numpy(chosen)


@validated
def resampled(samples: Samples, num: Count | None = None, seed: int = 0) -> Samples:
    """Resample the samples of each prompt in proportion to their weights, with replacement.

    The distribution of the result converges to the target as the number of samples grows. Every resampled
    sample has the mean weight of its prompt, and the costs of the sample that it copies.

    Args:
        samples: Samples of a weighted sampler.
        num: Number of resampled samples per prompt (default: the number of its samples).
        seed: Seed of the random numbers.

    Returns:
        The resampled samples, ordered by prompt. For a prompt whose samples all have weight zero, they are
        not accepted.

    Raises:
        InputError: If all samples of all prompts have weight zero.
    """
    masses, chosen = log_accepted_masses(samples), []
    if len(masses) and not bool((masses > -math.inf).any()):
        hint = "all samples have weight zero; draw more samples, or raise the budget"
        raise InputError("log_weight", -math.inf, hint)
    for prompt, (rows, log_weights) in enumerate(_by_prompt(samples)):
        if not len(rows):
            continue
        count = len(rows) if num is None else num
        weighs = bool(masses[prompt] > -math.inf)
        places = draws(log_weights, count, seed, prompt) if weighs else torch.arange(count) % len(rows)
        chosen.append(rows[places])
    index = torch.cat(chosen) if chosen else torch.zeros(0, dtype=torch.int64)
    chosen_samples = samples.at(index)
    log_weight = masses[chosen_samples.prompt]
    accepted = chosen_samples.accepted & (log_weight > -math.inf)
    return replace(chosen_samples, log_weight=log_weight, accepted=accepted)


def _by_prompt(samples: Samples) -> list[tuple[Tensor, Tensor]]:
    """Return for each prompt the indices (k,) of its samples and their log-weights (k,) float64."""
    if not isinstance(samples, Samples):
        raise InputError("samples", type(samples).__name__, "give Samples, as returned by `generate`")
    log_weight = samples.log_weight.double().masked_fill(~samples.accepted, -math.inf)
    prompts = int(samples.prompt.max()) + 1 if len(samples.prompt) else 0
    order = samples.prompt.argsort(stable=True)
    counts = torch.bincount(samples.prompt, minlength=prompts).tolist()
    return [(rows, log_weight[rows]) for rows in order.split(counts)]
