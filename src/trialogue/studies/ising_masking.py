"""How much faster is an Ising model learned from its masked conditionals when more sites are masked?

Figures 4.1 and 4.2 of the thesis: four spins, all coupled with the same J, are fitted by k-pseudolikelihood, and the
squared error of the parameters is followed as the training set grows, for k = 1 to 4 masked sites. The thesis draws
ten repetitions and prints no numbers. Here the figure is repeated many times, and beside it stands what theory says of
it: n times the squared error tends to the trace of the asymptotic covariance (Lemma 4.1.1), computed exactly.

Every sample comes with one random mask, as in Definition 4.1.2. Then k sites of N are scored per sample, and most of
the effect is that. The control scores all masks of size k of every sample: then there is almost no gap.
One replication is one repetition of the figure, with data sets of its own for every coupling and size.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.errors import InputError, whole_number
from trialogue.inference import BlockGibbs
from trialogue.ledger.study import Study, require_seeds
from trialogue.randomness import seed_of
from trialogue.studies.ising_masking_claims import CLAIMS
from trialogue.studies.ising_masking_figures import FIGURES
from trialogue.studies.ising_masking_tables import TABLES
from trialogue.theory.masking.mixing import poincare_constant
from trialogue.theory.masking.pseudolikelihood import asymptotic_covariance, masking_more
from trialogue.training.pseudolikelihood import fit_pseudolikelihood

MOST_SITES = 6
"""The control scores all masks of a sample, and the exact traces list all states."""


@dataclass(frozen=True)
class Config:
    """A clique of `sites` spins for each of `couplings`, and training sets of each of `sizes`.

    Every seed is one repetition of the figures, with `data_sets` training sets in every cell.
    """

    sites: int = 4
    couplings: tuple[float, ...] = (0.05, 0.3)
    field: float = 0.0
    sizes: tuple[int, ...] = (300, 1000, 3000, 10_000)
    data_sets: int = 10
    seeds: tuple[int, ...] = tuple(range(12))

    def __post_init__(self) -> None:
        if not 2 <= whole_number("sites", self.sites, 1) <= MOST_SITES:
            raise InputError("sites", self.sites, f"use 2 to {MOST_SITES}")
        if not self.couplings or not all(map(math.isfinite, self.couplings)):
            raise InputError("couplings", self.couplings, "give one or more finite numbers")
        if len(set(self.couplings)) < len(self.couplings):
            raise InputError("couplings", self.couplings, "give different ones")
        if not math.isfinite(self.field):
            raise InputError("field", self.field, "use a finite number")
        if not self.sizes or min(self.sizes) < 1 or list(self.sizes) != sorted(set(self.sizes)):
            raise InputError("sizes", self.sizes, "give increasing numbers of at least 1")
        require_seeds("seeds", self.seeds)
        whole_number("data_sets", self.data_sets, 2)

    def model(self, coupling: float) -> Ising:
        """The model that the data are drawn from."""
        return Ising.clique(self.sites, self.sites, coupling, self.field)


PRESETS = {
    "smoke": Config(sizes=(300, 1000), data_sets=2, seeds=(0, 1)),
    "default": Config(),
    "paper": Config(sizes=(300, 1000, 3000, 10_000, 30_000, 100_000), seeds=tuple(range(100))),
}


def parts(config: Config) -> list[str]:
    """The exact numbers, and one part per repetition of the figures."""
    return ["exact", *(f"repetition-{seed}" for seed in config.seeds)]


def run(config: Config, part: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Measure one part."""
    del artifacts
    if part == "exact":
        yield from exact_rows(config)
        return
    seed = int(part.rpartition("-")[2])
    for coupling in config.couplings:
        for row in measured_rows(config, coupling, seed):
            yield {"kind": "fit", "seed": seed, "coupling": coupling, **row}


def exact_rows(config: Config) -> Iterator[dict[str, Any]]:
    """The asymptotic covariance of every estimator, and the Poincaré constant of k-Gibbs.

    `pairs` is "unordered" for the convention of the project, "ordered" where every pair counts twice in the energy.
    """
    for coupling in config.couplings:
        model = config.model(coupling)
        for size in range(1, config.sites + 1):
            common = {"kind": "exact", "coupling": coupling, "block_size": size}
            constant = poincare_constant(BlockGibbs(size), model)
            for masks, number in (("one", 1), ("all", math.inf)):
                covariance = asymptotic_covariance(model, size, masks_per_sample=number)
                yield {
                    **common,
                    "pairs": "unordered",
                    "masks": masks,
                    "poincare": constant,
                    **_traces(covariance, config),
                }
            # exp(sum over i != j of J x_i x_j) is the model of coupling 2 J, whose estimate is halved.
            doubled = _traces(asymptotic_covariance(config.model(2 * coupling), size), config)
            halved = doubled["trace_couplings"] / 4
            yield {
                **common,
                "pairs": "ordered",
                "masks": "one",
                "trace": halved + doubled["trace_fields"],
                "trace_couplings": halved,
                "trace_fields": doubled["trace_fields"],
            }
        loewner = masking_more(model).smallest_eigenvalue
        for size, eigenvalue in enumerate(loewner.tolist(), start=1):
            yield {
                "kind": "theorem",
                "coupling": coupling,
                "block_size": size,
                "smallest_eigenvalue": eigenvalue,
            }


def measured_rows(config: Config, coupling: float, seed: int) -> Iterator[dict[str, Any]]:
    """One row per size of the training set, number of masked sites, and reading of the masks.

    `squared_error` is the mean over training sets of the squared errors of the parameters, summed, `deviation` their
    standard deviation; `within_trace` is the share of training sets whose error is at most Tr Gamma / n, `unbounded`
    the share without a finite estimate, whose error counts as infinite.
    """
    model = config.model(coupling)
    pairs = _pairs(config)
    for size in range(1, config.sites + 1):
        trace = float(asymptotic_covariance(model, size).trace())
        for n in config.sizes:
            squares: dict[str, list[Tensor]] = {"one": [], "all": []}
            for data_set in range(config.data_sets):
                name = ("ising-masking", coupling, n, data_set)
                samples = model.sample(n, seed_of(seed, *name, "samples"))
                one = _estimate(samples, size, seed_of(seed, *name, "masks", size))
                every = one if size == config.sites else _estimate(*every_mask(samples, size))
                for masks, estimate in (("one", one), ("all", every)):
                    squares[masks].append((estimate - model.parameters) ** 2)
            for masks, errors in squares.items():
                of_couplings, all_together = torch.stack(
                    [torch.stack((error[:pairs].sum(), error.sum())) for error in errors]
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


def every_mask(samples: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Each of `samples` (n, N) once with every mask of `size` sites, and the masks: both (n * masks, N)."""
    sites = samples.shape[1]
    masks = torch.tensor(
        [[site in chosen for site in range(sites)] for chosen in combinations(range(sites), size)]
    )
    return samples.repeat_interleave(len(masks), 0), masks.repeat(len(samples), 1)


def _estimate(samples: Tensor, masks: int | Tensor, seed: int = 0) -> Tensor:
    """The estimated parameters, infinite where there is no finite estimate."""
    given: dict[str, Any] = {"masks": masks} if isinstance(masks, Tensor) else {"block_size": masks}
    try:
        return fit_pseudolikelihood(samples, seed=seed, **given).model.parameters
    except InputError as error:
        if error.field != "samples":
            raise
        sites = samples.shape[1]
        return torch.full((sites * (sites + 1) // 2,), math.inf, dtype=torch.float64)


def _traces(covariance: Tensor, config: Config) -> dict[str, float]:
    diagonal = covariance.diagonal()
    pairs = _pairs(config)
    return {
        "trace": float(diagonal.sum()),
        "trace_couplings": float(diagonal[:pairs].sum()),
        "trace_fields": float(diagonal[pairs:].sum()),
    }


def _pairs(config: Config) -> int:
    return config.sites * (config.sites - 1) // 2


STUDY = Study(
    name="ising-masking",
    doc=__doc__,
    source="Thesis section 4.2.1: Figures 4.1 and 4.2; Lemma 4.1.1, Theorem 4.1.1",
    version=1,
    presets=PRESETS,
    parts=parts,
    run=run,
    claims=CLAIMS,
    tables=TABLES,
    figures=FIGURES,
)
