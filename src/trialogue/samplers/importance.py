"""From weighted samples to the restricted distribution: effective sample size, accepted mass, resampling.

A sampler that is properly weighted draws x with a weight w such that E[w f(x)] = sum of p(x) V(x) f(x) for any f. Its
weighted samples answer for the distribution p(x) V(x) / sum of p V, in the limit of many samples and in no other. A
sample that was not accepted has weight zero.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue.samplers.prefix.samples import Samples
from trialogue.validation import Count, validated


def effective_sample_size(log_weights: Tensor) -> float:
    """How many equally weighted samples those of `log_weights` (n,) are worth: (sum w)^2 / sum w^2 (Kish 1965).

    From 1 to n, and 0 where all weights are zero (logarithm -inf). Raises `InputError` where a weight is not a number
    or infinite.
    """
    log_weights = real_tensor("log_weights", log_weights, "give logarithms of weights (n,)").flatten()
    wrong = log_weights.isnan() | (log_weights == math.inf)
    if bool(wrong.any()):
        raise InputError("log_weights", float(log_weights[wrong][0]), "use finite numbers, or -inf for zero")
    if not bool((log_weights > -math.inf).any()):
        return 0.0
    return math.exp(float(2 * log_weights.logsumexp(0) - (2 * log_weights).logsumexp(0)))


def effective_sample_sizes(samples: Samples) -> Tensor:
    """The effective sample size (prompts,) float64 of the samples of each prompt; 0 where none is accepted."""
    sizes = [effective_sample_size(log_weights) for _, log_weights in _by_prompt(samples)]
    return torch.tensor(sizes, dtype=torch.float64)


def log_accepted_masses(samples: Samples) -> Tensor:
    """Logarithm (prompts,) float64 of each prompt's mean weight, -inf where no sample is accepted.

    The mean weight estimates sum over x of p(x) V(x), for a rule the probability that the oracle obeys it, without bias
    where the sampler is properly weighted (`TokenwiseRejection` with a mask, `WeightedRejection`,
    `SequentialMonteCarlo`) and no sample was cut off by a budget. For `Ancestral` with a 0/1 verifier it is the share
    that was accepted. Of samplers that know no weight (`Rejection`, `Backtracking`, ..) it says nothing.
    """
    means = [
        log_weights.logsumexp(0) - math.log(max(len(log_weights), 1))
        for _, log_weights in _by_prompt(samples)
    ]
    return torch.stack(means) if means else torch.zeros(0, dtype=torch.float64)


def draws(log_weights: Tensor, num: int, seed: int, prompt: int) -> Tensor:
    """Indices (num,) int64 of samples drawn in proportion to exp of their `log_weights` (n,), with replacement.

    The draws of each `prompt` are a stream of their own. Raises `InputError` where no sample has weight.
    """
    if not bool((log_weights > -math.inf).any()):
        hint = f"every sample of prompt {prompt} has weight zero: draw more samples, or raise the budget"
        raise InputError("log_weight", -math.inf, hint)
    weights = log_weights.double().softmax(0).numpy()
    chosen = numpy_generator(seed, "resampled", prompt).choice(len(weights), size=num, p=weights)
    return torch.from_numpy(chosen)


@validated
def resampled(samples: Samples, num: Count | None = None, seed: int = 0) -> Samples:
    """Draw `num` of each prompt's samples (by default as many as it has) in proportion to their weights.

    The more samples there are the closer is the distribution of what is drawn to the restricted distribution. Draws are
    independent, with replacement, and keyed by prompt. Each weighs its prompt's mean weight, and reports what the
    sample that it is cost; `total` remains that of the run. A prompt none of whose samples has weight gets `num` of
    them that are not accepted and have weight zero. Raises `InputError` where that is every prompt.
    """
    masses, chosen = log_accepted_masses(samples), []
    if len(masses) and not bool((masses > -math.inf).any()):
        hint = "every sample of every prompt has weight zero: draw more samples, or raise the budget"
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
    """Of each prompt the places (k,) of its samples and their log-weights (k,) float64."""
    if not isinstance(samples, Samples):
        raise InputError("samples", type(samples).__name__, "give the Samples that `generate` returned")
    log_weight = samples.log_weight.double().masked_fill(~samples.accepted, -math.inf)
    prompts = int(samples.prompt.max()) + 1 if len(samples.prompt) else 0
    order = samples.prompt.argsort(stable=True)
    counts = torch.bincount(samples.prompt, minlength=prompts).tolist()
    return [(rows, log_weight[rows]) for rows in order.split(counts)]
