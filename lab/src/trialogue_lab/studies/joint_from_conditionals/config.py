"""Settings of the study: the data sets on which the theorem is tested, and the random models for the other claims."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Different, Finite, Positive, Probability, Seeds, Settings, Some
from trialogue_lab.studies.joint_from_conditionals.clique_family import CliqueFamily


@dataclass(frozen=True, kw_only=True)
class FitProblem(Settings):
    """A fitting problem: the true Ising model, the size of the data sets, and the range of the fitted parameters.

    All pairs of spins have the coupling J, and all spins have the field h. The fitted parameters are restricted to a
    box: J is between 0 and 2 `coupling`, and h is between `field` - `margin` and `field` + `margin`.

    Args:
        sites: Number of spins.
        coupling: Coupling J of the true model.
        field: Field h of the true model.
        margin: Half of the range of the field in the box.
        samples: Number of samples.
        masks: Number of random masks per sample. A mask covers one spin.
    """

    sites: Annotated[int, Interval(ge=2, le=4)]
    coupling: Positive
    field: Finite
    margin: Positive = 0.2
    samples: Count
    masks: Count

    def check(self) -> None:
        """Raise `InputError` if the number of masks needs more than 64 bits.

        Raises:
            InputError: If there are too many masks in a data set.
        """
        if self.samples * self.masks >= 1 << 62:
            hint = f"use fewer than {(1 << 62) // self.samples} for {self.samples} samples"
            raise InputError("masks", self.masks, hint)

    @property
    def family(self) -> CliqueFamily:
        """Ising models that can be fitted, with parameters in the box."""
        fields = (self.field - self.margin, self.field + self.margin)
        return CliqueFamily(self.sites, (0.0, 2 * self.coupling), fields)

    @property
    def label(self) -> str:
        """Label in rows and tables, for example "N = 2, n = 100000, m = 1e+10"."""
        return f"N = {self.sites}, n = {self.samples:g}, m = {self.masks:g}"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Ising models are fitted to data sets by predicting masked spins. Random Ising models are used to test how fast Gibbs
    samplers converge, and whether the loss of the fit is convex.

    Args:
        sizes: Sizes of data sets for which Theorem 4.1.4 is tested.
        delta: Probability that the bound of the theorem may fail.
        eps: Accuracy of the cover of the box of parameters by cells (Assumption 4.1.4).
        data_sets: Number of data sets per seed and size.
        spins: Number of spins of the random Ising models.
        models: Number of random Ising models per seed.
        deviation: Standard deviation of the couplings and fields of the random models.
        thetas: Number of random parameters per model at which the Hessian of the loss is computed. Their standard
            deviation is 3 `deviation`.
        times: Times at which the chi-square and KL divergence of a Gibbs sampler are measured.
        seeds: Seeds of the data sets and of the random models.
    """

    sizes: Some[FitProblem] = (
        FitProblem(sites=2, coupling=0.1, field=0.5, samples=10**5, masks=10**10),
        FitProblem(sites=2, coupling=0.1, field=0.5, samples=10**6, masks=10**11),
        FitProblem(sites=3, coupling=0.03, field=1.0, samples=10**6, masks=10**11),
        FitProblem(sites=3, coupling=0.03, field=1.0, samples=10**7, masks=10**11),
    )
    delta: Probability = 0.1
    eps: Positive = 0.05
    data_sets: Annotated[int, Ge(2)] = 20
    spins: Annotated[int, Interval(ge=2, le=5)] = 3
    models: Count = 5
    deviation: Positive = 0.5
    thetas: Count = 10
    times: Different[Positive] = (0.5, 1.0, 2.0, 5.0, 10.0)
    seeds: Seeds = tuple(range(12))


PRESETS = {
    "smoke": Config(data_sets=2, models=2, thetas=2, seeds=(0, 1)),
    "pilot": Config(seeds=tuple(range(100, 106))),
    "default": Config(),
    "night": Config(data_sets=200, models=50, thetas=20, seeds=tuple(range(30))),
    "paper": Config(data_sets=1000, models=200, thetas=20, spins=4, seeds=tuple(range(30))),
}
