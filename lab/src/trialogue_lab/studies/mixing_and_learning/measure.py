"""Tasks of a run: covariances of estimators, and their bounds, on every set of random models."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pandas import DataFrame
from torch import Tensor

from trialogue.samplers.exact import ergodicity
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.mixing_and_learning import models
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED, Config, make_size_label
from trialogue_lab.theory.masking import block_laws, pseudolikelihood
from trialogue_lab.theory.masking.covariance_bound import bound_covariance

RANK_TOLERANCE = 1e-9
"""Eigenvalues below this share of the largest one count as zero."""


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each seed of the random models.

    Each task computes how accurately the parameters of random Ising models are estimated by predicting masked spins
    from the others. It compares this accuracy with bounds from the speed of a Markov chain.

    Args:
        config: Settings of the run.
    """
    return [Part(f"seed-{seed}", partial(_measure, config, seed)) for seed in config.seeds]


def _measure(config: Config, seed: int, _: Path) -> MeasuredRows:
    places = range(config.models)
    for coupling in config.couplings:
        ising = [models.sample_ising(config.sites, coupling, config.field, seed, place) for place in places]
        for row in compare_bounds(config, ising, seed):
            yield {"kind": "bound", "seed": seed, "coupling": coupling, **row}
        for row in measure_gains(ising):
            yield {"kind": "more", "seed": seed, "coupling": coupling, "family": "Ising", **row}
    families = [models.sample_family(config.sites, seed, place) for place in places]
    for row in measure_gains(families):
        yield {"kind": "more", "seed": seed, "family": models.RandomFamily.name, **row}


def compare_bounds(config: Config, targets: list[Any], seed: int) -> MeasuredRows:
    """Compare the errors of parameter estimates with theoretical upper bounds, for random models.

    Parameters are estimated by pseudolikelihood, that is, by predicting masked variables from all others. A mask
    distribution chooses the masked variables. The error is the asymptotic covariance of the estimates.

    Args:
        config: Settings of the run.
        targets: The models whose parameters are estimated.
        seed: Seed of the set of models.

    Yields:
        One row per mask distribution. It has the minimum, mean or maximum over all models of each value that
        `compare_covariance` returns.
    """
    numbers: dict[str, list[dict[str, float]]] = {}
    for place, model in enumerate(targets):
        single_site: float | None = None
        for name, masks in make_mask_distributions(config, seed, place).items():
            found = compare_covariance(model, masks)
            if name not in (WEIGHTED, ADAPTIVE):
                size = int(masks.blocks[0].sum())
                single_site = single_site or found["constant"]
                found["gain"] = size * found["constant"] / single_site
                found["of_independent"] = found["best"] * size / model.sites
                found["constant_error"] = abs(found["constant"] * size / model.sites - 1)
            if name == ADAPTIVE and place == 0:
                found["classes"] = count_closed_classes(model, masks)
            numbers.setdefault(name, []).append(found)
    for name, values in numbers.items():
        yield {"law": name, "models": len(values), **summarize(values)}


def make_mask_distributions(config: Config, seed: int, place: int) -> dict[str, block_laws.BlockDistribution]:
    """Return all mask distributions that are tested on a model.

    A mask is a set of variables that an estimator predicts from all others, to fit the parameters of the model
    (pseudolikelihood). A mask distribution chooses the mask at random.

    Args:
        config: Settings of the run, with the number N of variables and the number of random sets.
        seed: Seed of the set of models.
        place: Index of the model in its set.

    Returns:
        The distributions by name. The first N are uniform over all masks of k variables, for k from 1 to N. The next
        one chooses among random masks with fixed probabilities. In the last one, these probabilities depend on the
        values of the variables.
    """
    sizes = range(1, config.sites + 1)
    uniform = {
        make_size_label(size): block_laws.block_distribution(config.sites, 2, block_size=size)
        for size in sizes
    }
    return uniform | {
        name: models.sample_masks(config.sites, config.blocks, name == ADAPTIVE, seed, place)
        for name in (WEIGHTED, ADAPTIVE)
    }


def compare_covariance(
    model: pseudolikelihood.ExponentialFamily, masks: block_laws.BlockDistribution
) -> dict[str, float]:
    """Test the bound Gamma <= C I^{-1} on the error of parameter estimates (Theorems 4.1.2 and 4.1.3).

    Gamma is the asymptotic covariance of pseudolikelihood estimates, which are found by predicting masked variables
    from all others. I is the Fisher information. C is the inverse spectral gap (Poincaré constant) of the Gibbs sampler
    that resamples the masked variables.

    Args:
        model: The model whose parameters are estimated.
        masks: Distribution of the set of masked variables.

    Returns:
        Measured values by name.

        - `constant`: C.
        - `best`: smallest constant for which the bound holds.
        - `tightness`: `best` / C.
        - `slack`: smallest eigenvalue of C I^{-1} - Gamma, relative to the largest eigenvalue of C I^{-1}.
        - `efficiency`: smallest eigenvalue of Gamma - I^{-1}, relative to the largest eigenvalue of Gamma.
        - `information_slack`: smallest eigenvalue of Gamma^{-1} - I / C.
        - `trace`: Tr Gamma.
        - `trace_share`: Tr Gamma / (C Tr I^{-1}).
    """
    probabilities, features = pseudolikelihood.enumerate_family(model)
    bound = bound_covariance(probabilities, features, masks)
    fisher = pseudolikelihood.fisher_information(probabilities, features).inverse()
    gamma = pseudolikelihood.pseudolikelihood_information(probabilities, features, masks).inverse()
    return {
        "constant": bound.constant,
        "best": bound.best,
        "tightness": bound.best / bound.constant,
        "slack": bound.slack / (bound.constant * _compute_largest_eigenvalue(fisher)),
        "information_slack": bound.information_slack,
        "efficiency": float(torch.linalg.eigvalsh(gamma - fisher)[0]) / _compute_largest_eigenvalue(gamma),
        "trace": float(gamma.trace()),
        "trace_share": float(gamma.trace() / (bound.constant * fisher.trace())),
    }


def count_closed_classes(
    model: pseudolikelihood.ExponentialFamily, masks: block_laws.BlockDistribution
) -> float:
    """Return the number of sets of states that a Gibbs sampler cannot leave (closed classes).

    The sampler resamples random blocks of variables (equation 4.26), and its states are pairs of a model state and a
    block. Its mixing speed is defined only if there is exactly one closed class.

    Args:
        model: The model.
        masks: Distribution of the block given the model state.
    """
    probabilities, _ = pseudolikelihood.enumerate_family(model)
    return float(ergodicity(block_laws.joint_block_dynamics(probabilities, masks)).closed_classes)


def summarize(values: list[dict[str, float]]) -> dict[str, float]:
    """Aggregate measured values over models by minima, means and maxima.

    Args:
        values: For each model, the values that `compare_covariance` returns, and optional values such as
            "gain".

    Returns:
        Aggregated values by name.

        - Minima of "slack", "information_slack" and "efficiency", under their own names.
        - Minimum, mean and maximum of "tightness" and "trace_share", with the suffixes `_least`, none and
          `_most`.
        - Mean logarithms of "constant" and "trace", with the prefix `log_`.
        - Maxima of the optional values, with the suffix `_most`.
    """
    table = DataFrame(values)
    found = {name: table[name].min() for name in ("slack", "information_slack", "efficiency")}
    for name in ("tightness", "trace_share"):
        shares = table[name]
        found |= {f"{name}_least": shares.min(), name: shares.mean(), f"{name}_most": shares.max()}
    found |= {f"log_{name}": np.log(table[name]).mean() for name in ("constant", "trace")}
    for name in {"gain", "of_independent", "constant_error", "classes"} & set(table):
        found[f"{name}_most"] = table[name].max()
    return {name: float(value) for name, value in found.items()}


def measure_gains(targets: list[Any]) -> MeasuredRows:
    """Measure how much more accurate parameter estimates become if one more variable is masked (Theorem 4.1.1).

    Parameters are estimated by predicting k uniformly chosen (masked) variables from all others. Gamma^k is the
    asymptotic covariance of the estimates, and I^k its inverse.

    Args:
        targets: The models whose parameters are estimated.

    Yields:
        One row per step from k to k + 1 masked variables. The improvement on one model is the smallest eigenvalue of
        Gamma^k - Gamma^{k+1}, divided by Tr Gamma^k.

        - `smallest`, `smallest_most`: minimum and maximum improvement over models.
        - `trace_drop`: minimum over models of 1 - Tr Gamma^{k+1} / Tr Gamma^k.
        - `rank_most`: maximum rank of I^{k+1} - I^k.
        - `identity`: largest error of the theorem's formula for I^{k+1} - I^k.
    """
    gains = DataFrame([gain for model in targets for gain in _compute_gains(model)])
    for masked in gains.masked.unique().tolist():
        table = gains[gains.masked == masked]
        yield {
            "masked": masked,
            "parameters": len(targets[0].parameters),
            "smallest": float(table.smallest.min()),
            "smallest_most": float(table.smallest.max()),
            "trace_drop": float(table.trace_drop.min()),
            "rank_most": float(table["rank"].max()),
            "identity": float(table.identity.max()),
        }


def _compute_gains(model: Any) -> Iterator[dict[str, float]]:
    """Yield, for each k, how much more accurate parameter estimates are with k + 1 masked variables than with k."""
    probabilities, features = pseudolikelihood.enumerate_family(model)
    theorem = pseudolikelihood.compare_mask_sizes(model)
    information = [
        pseudolikelihood.pseudolikelihood_information(
            probabilities, features, block_laws.block_distribution(model.sites, 2, block_size=size)
        )
        for size in range(1, model.sites + 1)
    ]
    traces = [float(matrix.inverse().trace()) for matrix in information]
    for step in range(model.sites - 1):
        yield {
            "masked": step + 1,
            "smallest": float(theorem.smallest_eigenvalue[step]) / traces[step],
            "trace_drop": 1 - traces[step + 1] / traces[step],
            "rank": float(
                _count_increasing_directions(information[step + 1] - information[step], information[step])
            ),
            "identity": float(theorem.identity_discrepancy[step]),
        }


def _count_increasing_directions(gain: Tensor, information: Tensor) -> int:
    """Return the rank of the `gain` of information, with eigenvalues relative to the `information`."""
    factor = torch.linalg.cholesky(information)
    half = torch.linalg.solve_triangular(factor, gain, upper=False)
    relative = torch.linalg.eigvalsh(torch.linalg.solve_triangular(factor, half.T, upper=False))
    return int((relative > RANK_TOLERANCE * float(relative[-1])).sum())


def _compute_largest_eigenvalue(matrix: Tensor) -> float:
    return float(torch.linalg.eigvalsh(matrix)[-1])
