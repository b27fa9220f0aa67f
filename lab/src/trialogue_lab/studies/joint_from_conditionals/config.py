"""Settings of the study: the sizes for which the theorem is tested, and the models for which decays are tested."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Different, Finite, Positive, Probability, Seeds, Settings, Some
from trialogue_lab.studies.joint_from_conditionals.clique_family import CliqueFamily


@dataclass(frozen=True, kw_only=True)
class Sizes(Settings):
    """Sizes of the data sets of one clique, and the box that contains the fitted parameters (J, h).

    In the box, J is between 0 and 2 `coupling`, and h is between `field` - `margin` and `field` + `margin`.
    """

    sites: Annotated[int, Interval(ge=2, le=4)]
    coupling: Positive
    """Coupling J of the data's distribution."""
    field: Finite
    """Field h of the data's distribution."""
    margin: Positive = 0.2
    samples: Count
    masks: Count
    """Number of masks per sample."""

    def check(self) -> None:
        """Raise `InputError` if the number of masks does not fit into 64 bits."""
        if self.samples * self.masks >= 1 << 62:
            raise InputError(
                "masks", self.masks, f"use fewer than {(1 << 62) // self.samples} for {self.samples} samples"
            )

    @property
    def family(self) -> CliqueFamily:
        """The models that are fitted, with parameters in the box."""
        return CliqueFamily(
            self.sites, (0.0, 2 * self.coupling), (self.field - self.margin, self.field + self.margin)
        )

    @property
    def label(self) -> str:
        """Label in rows and tables."""
        return f"N = {self.sites}, n = {self.samples:g}, m = {self.masks:g}"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    The theorem is tested for each of `sizes`. Decays and convexity are tested on random Ising models.
    """

    sizes: Some[Sizes] = (
        Sizes(sites=2, coupling=0.1, field=0.5, samples=10**5, masks=10**10),
        Sizes(sites=2, coupling=0.1, field=0.5, samples=10**6, masks=10**11),
        Sizes(sites=3, coupling=0.03, field=1.0, samples=10**6, masks=10**11),
        Sizes(sites=3, coupling=0.03, field=1.0, samples=10**7, masks=10**11),
    )
    delta: Probability = 0.1
    """Probability that the bound of the theorem may fail."""
    eps: Positive = 0.05
    """Accuracy of the cover of the box by cells (Assumption 4.1.4)."""
    data_sets: Annotated[int, Ge(2)] = 20
    """Number of data sets per seed and size."""
    spins: Annotated[int, Interval(ge=2, le=5)] = 3
    """Number of spins of the random models."""
    models: Count = 5
    """Number of random models per seed."""
    deviation: Positive = 0.5
    """Standard deviation of the couplings and fields of the random models."""
    thetas: Count = 10
    """Number of parameters per model at which the Hessian is computed. They are normal with standard deviation
    3 `deviation`."""
    times: Different[Positive] = (0.5, 1.0, 2.0, 5.0, 10.0)
    seeds: Seeds = tuple(range(12))


PRESETS = {
    "smoke": Config(data_sets=2, models=2, thetas=2, seeds=(0, 1)),
    "pilot": Config(seeds=tuple(range(100, 106))),
    "default": Config(),
    "night": Config(data_sets=200, models=50, thetas=20, seeds=tuple(range(30))),
    "paper": Config(data_sets=1000, models=200, thetas=20, spins=4, seeds=tuple(range(30))),
}
