"""Settings of the study: the sizes at which the theorem is tried, and the models of which decays are followed."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Different, Finite, Positive, Probability, Seeds, Settings, Some
from trialogue_lab.studies.joint_from_conditionals.clique_family import CliqueFamily


@dataclass(frozen=True, kw_only=True)
class Sizes(Settings):
    """`samples` samples with `masks` masks each of a clique of `sites` spins; fits have J and h in a box.

    The data's J is `coupling` and their h `field`; the box goes from 0 to twice that J, and from `field` less
    `margin` to `field` more `margin`.
    """

    sites: Annotated[int, Interval(ge=2, le=4)]
    coupling: Positive
    field: Finite
    margin: Positive = 0.2
    samples: Count
    masks: Count

    def check(self) -> None:
        """Raise `InputError` where counts of masks would not fit into 64 bits."""
        if self.samples * self.masks >= 1 << 62:
            raise InputError("masks", self.masks, f"with {self.samples} samples use fewer")

    @property
    def family(self) -> CliqueFamily:
        """What is fitted."""
        return CliqueFamily(
            self.sites, (0.0, 2 * self.coupling), (self.field - self.margin, self.field + self.margin)
        )

    @property
    def label(self) -> str:
        """How tables call it."""
        return f"N = {self.sites}, n = {self.samples:g}, m = {self.masks:g}"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """The theorem at each of `sizes` with risk `delta` and `eps`; every seed has `data_sets` data sets at each.

    Decays and convexity are tried on `models` random Ising models of `spins` spins per seed, whose couplings and
    fields are normal with deviation `deviation`.
    """

    sizes: Some[Sizes] = (
        Sizes(sites=2, coupling=0.1, field=0.5, samples=10**5, masks=10**10),
        Sizes(sites=2, coupling=0.1, field=0.5, samples=10**6, masks=10**11),
        Sizes(sites=3, coupling=0.03, field=1.0, samples=10**6, masks=10**11),
        Sizes(sites=3, coupling=0.03, field=1.0, samples=10**7, masks=10**11),
    )
    delta: Probability = 0.1
    eps: Positive = 0.05
    data_sets: Annotated[int, Ge(2)] = 20
    spins: Annotated[int, Interval(ge=2, le=5)] = 3
    models: Count = 5
    deviation: Positive = 0.5
    thetas: Count = 10
    """Parameters per model at which the Hessian is looked at, normal with three times the deviation."""
    times: Different[Positive] = (0.5, 1.0, 2.0, 5.0, 10.0)
    seeds: Seeds = tuple(range(12))


PRESETS = {
    "smoke": Config(data_sets=2, models=2, thetas=2, seeds=(0, 1)),
    "pilot": Config(seeds=tuple(range(100, 106))),
    "default": Config(),
    "night": Config(data_sets=200, models=50, thetas=20, seeds=tuple(range(30))),
    "paper": Config(data_sets=1000, models=200, thetas=20, spins=4, seeds=tuple(range(30))),
}
