"""Samplers of p(x)^alpha for Markov models with long texts.

In a Markov model, the next token depends on the last token only, so the target is known exactly at any length.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue import power
from trialogue.data import Table
from trialogue.randomness import derive_seed, numpy_generator
from trialogue.samplers import Ancestral, PowerMetropolis, Samples, SequentialMonteCarlo, generate
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.power_sampling.config import (
    CORRECTED,
    DRAWS,
    EXACT,
    METROPOLIS,
    PARTICLES,
    RELEASED,
    WEIGHTED,
    Config,
)
from trialogue_lab.theory.power import MarkovOracle, log_weight_second_moment, markov_oracle

Array = NDArray[np.float64]
VOCAB = 4
ENDED_VOCAB = 3
EOS = 0
BLOCKS = 16
_BINS = 6
_MOVES = 10**7
_ROWS = 4096


def make_random_model(seed: int, length: int) -> MarkovOracle:
    """Return a random Markov model with four tokens, whose texts all have the same length.

    Args:
        seed: Seed of the uniformly random next-token distributions.
        length: Number of tokens of a text.
    """
    stream = numpy_generator(seed, "power-sampling", "markov")
    first, matrix = stream.dirichlet(np.ones(VOCAB)), stream.dirichlet(np.ones(VOCAB), VOCAB)
    return markov_oracle(_make_table(first, matrix, length), length)


def make_random_ended_model(seed: int, length: int, end: float) -> MarkovOracle:
    """Return a random Markov model with two tokens and an end-of-sequence token.

    The texts have different lengths.

    Args:
        seed: Seed of the uniformly random next-token distributions.
        length: Maximum length of the texts.
        end: Probability of the end-of-sequence token after each token.
    """
    stream = numpy_generator(seed, "power-sampling", "ended")
    shares = (1 - end) * stream.dirichlet(np.ones(ENDED_VOCAB - 1), ENDED_VOCAB)
    rows = np.concatenate((np.full((ENDED_VOCAB, 1), end), shares), 1)
    return markov_oracle(_make_table(rows[0], rows, length, EOS), length)


def _make_table(first: Array, matrix: Array, length: int, eos: int | None = None) -> Table:
    """Return a Markov model with distribution `first` (V,) of the first token.

    `matrix` (V, V) has the probabilities of the next token given the last one.
    """

    def next_probs(last: tuple[int, ...]) -> Any:
        return (matrix[last[-1]] if last else first).tolist()

    return Table(next_probs, len(first), eos=eos, max_length=length, memory=1)


def mark_predictable_token(model: MarkovOracle, alpha: float) -> Tensor:
    """Mark all token pairs that end with one token: the one after which the next token is most predictable.

    After this token, the sum of p(a)^alpha over next tokens a is largest. Sampling at temperature 1 / alpha
    generates it too rarely.

    Args:
        model: Markov model with the same transition matrix at all positions.
        alpha: Power of the probability of a text.
    """
    sums = (alpha * model.log_transitions[0]).logsumexp(1)
    return (torch.arange(len(sums)) == sums.argmax()).expand(len(sums), -1)


def count_pairs(tokens: Tensor, pairs: Tensor) -> NDArray[np.int64]:
    """Count the pairs of successive tokens in each text that belong to a set of pairs.

    Args:
        tokens: Token ids (n, L).
        pairs: Boolean mask (V, V) of the pairs in the set.
    """
    return np.asarray(pairs[tokens[:, :-1], tokens[:, 1:]].sum(1).numpy())


def estimate_count_variation(counts: NDArray[np.int64], exact: Array) -> float:
    """Return the total variation distance between a sampled count and its exact distribution.

    The values of the count are merged into at most six intervals with about equal exact probabilities.

    Args:
        counts: Value (n,) of the count in each output.
        exact: Exact probability of each value.
    """
    # A count belongs to the interval that contains the middle of its step of the distribution function.
    interval = (_BINS * (exact.cumsum() - exact / 2)).astype(int).clip(0, _BINS - 1)
    found = np.bincount(interval[counts], minlength=_BINS)
    wanted = np.bincount(interval, weights=exact, minlength=_BINS)
    return float(np.abs(found / found.sum() - wanted).sum() / 2)


def make_samplers(length: int, alpha: float) -> dict[str, tuple[Sampler[Any], bool]]:
    """Return the samplers of p(x)^alpha that are compared at about equal numbers of model calls.

    Each name has a pair: the sampler, and whether it needs a target distribution p^alpha as an argument.

    Args:
        length: Number of tokens of a text. The chain has as many steps as 16 texts of this length cost model calls.
        alpha: Power of the probability of a text.
    """
    steps = max(1, round((DRAWS - 1) * length * 2 / (length + 1)))
    return {
        WEIGHTED: (SequentialMonteCarlo(DRAWS, ess_threshold=0.0, proposal="mask"), True),
        PARTICLES: (SequentialMonteCarlo(DRAWS, proposal="mask"), True),
        METROPOLIS: (PowerMetropolis(alpha, num_steps=steps), False),
    }


def _generate(
    model: MarkovOracle, sampler: Sampler[Any], alpha: float | None, outputs: int, seed: int
) -> Samples:
    return generate(
        model,
        sampler=sampler,
        verifier=None if alpha is None else power(alpha),
        num_samples=outputs,
        seed=seed,
        max_steps=_MOVES,
        batch_size=_ROWS,
    )


def measure_markov(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Compare samplers of p(x)^alpha for a Markov model p of texts, at about equal numbers of model calls.

    Samplers are compared by how often their texts visit one token, the one after which the next token is most
    predictable.

    Args:
        config: Settings of the run.
        seed: Seed of the model and of the outputs.

    Yields:
        One row per text length and sampler.

        - `variation`: total variation distance of the number of visits from its exact distribution.
        - `bias`: error of the mean number of visits, divided by the length.
        - `calls`: model calls per output, divided by the length.
        - `log_moment`: logarithm of the second moment of the importance weights (with mean 1) at temperature 1 / alpha.
    """
    alpha = config.powers[-1]
    for length in config.lengths:
        model = make_random_model(seed, length)
        target, pairs = model.power(alpha), mark_predictable_token(model, alpha)
        exact = target.pair_counts(pairs).numpy()
        mean = float(exact @ np.arange(len(exact)))
        moment = log_weight_second_moment(target, model.tempered(1 / alpha))
        runs = {
            name: _generate(
                model, sampler, alpha if takes else None, config.outputs, derive_seed(seed, name, length)
            )
            for name, (sampler, takes) in make_samplers(length, alpha).items()
        }
        runs[EXACT] = _generate(target, Ancestral(), None, config.outputs, derive_seed(seed, EXACT, length))
        for name, samples in runs.items():
            counts = count_pairs(samples.tokens, pairs)
            yield {
                "kind": "markov",
                "length": length,
                "sampler": name,
                "variation": estimate_count_variation(counts, exact),
                "bias": float(counts.mean() - mean) / length,
                "calls": float(samples.queries.double().mean()) / length,
                "log_moment": moment,
            }


def compute_length_distribution(model: MarkovOracle) -> Array:
    """Return the probability (L,) of each text length from 1 to L.

    Args:
        model: Model with an end-of-sequence token.
    """
    ended = model.marginals()[:, EOS].numpy()
    share = np.diff(ended, prepend=0.0)
    share[-1] += 1 - ended[-1]
    return np.asarray(share)


def measure_ended(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Run Metropolis-Hastings chains that sample from p(x)^alpha, for a Markov model with texts of different lengths.

    The chains extend and revise the text in 16 blocks.

    Args:
        config: Settings of the run.
        seed: Seed of the model and of the outputs.

    Yields:
        One row per chain and number of steps per block. `variation` is the total variation distance of the lengths of
        outputs from their exact distribution. Incomplete outputs count as one additional length, and `failed` is their
        share.
    """
    alpha, length = config.ended_power, config.ended_length
    model = make_random_ended_model(seed, length, config.end)
    exact = compute_length_distribution(model.power(alpha))
    for name, steps, samples in _sample_ended_texts(config, model, alpha, seed):
        accepted = samples.accepted
        found = np.bincount(samples.lengths[accepted].numpy(), minlength=length + 1)[1:] / len(accepted)
        failed = 1 - float(accepted.double().mean())
        yield {
            "kind": "ended",
            "chain": name,
            "steps": steps,
            "variation": float(np.abs(found - exact).sum() + failed) / 2,
            "failed": failed,
            "length": float(samples.lengths.double().mean()),
            "exact_length": float(exact @ np.arange(1, length + 1)),
            "calls": float(samples.queries.double().mean()),
        }


def _sample_ended_texts(
    config: Config, model: MarkovOracle, alpha: float, seed: int
) -> Iterator[tuple[str, int, Samples]]:
    """Yield the outputs of every chain and number of steps, and of exact sampling."""
    for steps in config.ended_steps:
        for name, sampler in (
            (CORRECTED, PowerMetropolis(alpha, steps, BLOCKS)),
            (RELEASED, PowerMetropolis.released(alpha, steps, BLOCKS)),
        ):
            stream = derive_seed(seed, "ended", name, steps)
            yield name, steps, _generate(model, sampler, None, config.ended_outputs, stream)
    stream = derive_seed(seed, "ended", EXACT)
    yield EXACT, 0, _generate(model.power(alpha), Ancestral(), None, config.ended_outputs, stream)
