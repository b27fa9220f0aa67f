"""Tasks of a run: they compute exact asymptotic errors, and the errors of models that are fitted to samples."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.randomness import derive_seed
from trialogue.samplers import BlockGibbs
from trialogue.samplers.exact import transition_matrix
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.ising_masking.config import Config
from trialogue_lab.theory.masking.mixing import poincare_constant
from trialogue_lab.theory.masking.pseudolikelihood import asymptotic_covariance, compare_mask_sizes
from trialogue_lab.training.pseudolikelihood import fit_pseudolikelihood


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which fit Ising models by predicting masked spins.

    Args:
        config: Settings of the run.

    Returns:
        One task for exact asymptotic errors, and one task per repetition, which fits models to sampled training sets.
    """
    repetitions = [
        Part(f"repetition-{seed}", partial(_measure_repetition, config, seed)) for seed in config.seeds
    ]
    return [Part("exact", lambda _: measure_exact_errors(config)), *repetitions]


def _measure_repetition(config: Config, seed: int, _: Path) -> MeasuredRows:
    for coupling in config.couplings:
        for row in measure_fits(config, coupling, seed):
            yield {"kind": "fit", "seed": seed, "coupling": coupling, **row}


def measure_exact_errors(config: Config) -> MeasuredRows:
    """Compute the exact asymptotic error of fitted Ising models.

    The models are fitted to n samples by predicting masked spins from the others. For large n, the squared error of the
    parameters is about Tr Gamma / n, where Gamma is their asymptotic covariance.

    Args:
        config: Settings of the run.

    Yields:
        One row per coupling, number of masked spins and kind of estimator, with Tr Gamma ("trace") and the Poincaré
        constant of the Markov chain that resamples the same number of spins. The column `pairs` is "unordered" if the
        energy counts each pair of spins once, and "ordered" if it counts each pair twice.
    """
    for coupling in config.couplings:
        model = config.model(coupling)
        for size in range(1, config.sites + 1):
            common = {"kind": "exact", "coupling": coupling, "block_size": size}
            constant = poincare_constant(transition_matrix(BlockGibbs(size), model))
            for masks, number in (("one", 1), ("all", math.inf)):
                covariance = asymptotic_covariance(model, size, masks_per_sample=number)
                setting = {"pairs": "unordered", "masks": masks, "poincare": constant}
                yield {**common, **setting, **_compute_traces(covariance, config)}
            ordered = asymptotic_covariance(config.model(coupling, "ordered"), size)
            yield {**common, "pairs": "ordered", "masks": "one", **_compute_traces(ordered, config)}
        loewner = compare_mask_sizes(model).smallest_eigenvalue
        for size, eigenvalue in enumerate(loewner.tolist(), start=1):
            common = {"kind": "theorem", "coupling": coupling, "block_size": size}
            yield {**common, "smallest_eigenvalue": eigenvalue}


def measure_fits(config: Config, coupling: float, seed: int) -> MeasuredRows:
    """Fit Ising models to sampled training sets, and measure their errors.

    The models are fitted by predicting masked spins from the others.

    Args:
        config: Settings of the run.
        coupling: Coupling J between the spins of the true model.
        seed: Seed of the training sets and masks.

    Yields:
        One row per number of masked spins, size n of the training set, and number of masks per sample.

        - `squared_error`, `deviation`: mean and standard deviation over training sets of the squared error, summed over
          parameters.
        - `squared_error_couplings`: mean for the couplings alone.
        - `within_trace`: share of training sets with an error of at most Tr Gamma / n, where Gamma is the asymptotic
          covariance.
        - `unbounded`: share of training sets without a finite estimate. Their error counts as infinite.
    """
    model = config.model(coupling)
    for size in range(1, config.sites + 1):
        trace = float(asymptotic_covariance(model, size).trace())
        for n in config.sizes:
            squares: dict[str, list[Tensor]] = {"one": [], "all": []}
            for data_set in range(config.data_sets):
                name = ("ising-masking", coupling, n, data_set)
                samples = model.sample(n, derive_seed(seed, *name, "samples"))
                one = _estimate(samples, size, derive_seed(seed, *name, "masks", size))
                every = one if size == config.sites else _estimate(*apply_every_mask(samples, size))
                for masks, estimate in (("one", one), ("all", every)):
                    squares[masks].append((estimate - model.parameters) ** 2)
            for masks, errors in squares.items():
                of_couplings, all_together = torch.stack(
                    [torch.stack((error[: config.pairs].sum(), error.sum())) for error in errors]
                ).unbind(1)
                yield {
                    "n": n,
                    "block_size": size,
                    "masks": masks,
                    "squared_error": float(all_together.mean()),
                    "squared_error_couplings": float(of_couplings.mean()),
                    "deviation": float(all_together.std()),
                    "within_trace": float((all_together <= trace / n).double().mean()),
                    "unbounded": float(all_together.isinf().double().mean()),
                }


def apply_every_mask(samples: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Repeat every sample once for each possible mask of a given number of spins.

    Args:
        samples: Samples (n, N) of N spins.
        size: Number of masked spins.

    Returns:
        The repeated samples and their boolean masks, both (n * masks, N).
    """
    chosen = torch.combinations(torch.arange(samples.shape[1]), size)
    masks = torch.zeros(len(chosen), samples.shape[1], dtype=torch.bool).scatter(1, chosen, value=True)
    return samples.repeat_interleave(len(masks), 0), masks.repeat(len(samples), 1)


def _estimate(samples: Tensor, masks: int | Tensor, seed: int = 0) -> Tensor:
    """Return the fitted parameters. They are infinite if no finite estimate exists."""
    options: dict[str, Any] = {"masks": masks} if isinstance(masks, Tensor) else {"block_size": masks}
    try:
        return fit_pseudolikelihood(samples, seed=seed, **options).model.parameters
    except InputError as error:
        if error.field != "samples":
            raise
        sites = samples.shape[1]
        return torch.full((sites * (sites + 1) // 2,), math.inf, dtype=torch.float64)


def _compute_traces(covariance: Tensor, config: Config) -> dict[str, float]:
    couplings, fields = covariance.diagonal().split((config.pairs, config.sites))
    return {
        "trace": float(covariance.diagonal().sum()),
        "trace_couplings": float(couplings.sum()),
        "trace_fields": float(fields.sum()),
    }
