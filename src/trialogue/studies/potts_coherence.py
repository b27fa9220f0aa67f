"""How long can a chain with a finite window hold one stored pattern, and why does the plane hold it for ever?

Theorem 1.1 of the document on Potts chains: above temperature zero walls between patterns are inevitable, from lengths
on that equation 5 bounds. Everything about the chains is exact, by transfer matrices: walls, coherent runs, decay rates
and the weight of all sequences with a single wall, against length, temperature, window, energy and number of patterns.
Exact samples, and Gibbs sampling that begins in a stored pattern, show the walls. Controls: one pattern, where there is
nothing to wall off, and forbidden windows, which the theorem excludes.

Theorem 1.2: random autoregressive models as chains and back, for both readings of the constant in equation 9, and
temperature as in equation 10 beside that of every token. Corollary 1.2.1: how many patterns such models store, and how
fast they leave them.

Theorem 2.1, the contrast: spins on a torus, from an ordered start, beside Onsager's magnetisation and Peierls' bound;
as many spins on a ring lose their order at the same temperatures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from trialogue.errors import InputError, whole_number
from trialogue.ledger.study import Study, require_seeds
from trialogue.studies.potts_coherence_chain_claims import CHAIN_CLAIMS
from trialogue.studies.potts_coherence_chains import (
    Sampled,
    chain_rows,
    closed_form_rows,
    control_rows,
    curve_rows,
    families,
    sampled_rows,
)
from trialogue.studies.potts_coherence_figures import FIGURES
from trialogue.studies.potts_coherence_map_claims import MAP_CLAIMS
from trialogue.studies.potts_coherence_maps import map_rows
from trialogue.studies.potts_coherence_plane import exact_plane_rows, plane_rows
from trialogue.studies.potts_coherence_tables import TABLES

Value = TypeVar("Value")


@dataclass(frozen=True)
class Config:
    """Chains of `patterns` and `windows` at `temperatures` and `lengths`, random energies up to each of `penalties`.

    `sampled` are drawn `chains` times per seed, by Gibbs sampling with `sweeps`; `models` random autoregressive models
    of each of `widths`; tori of `sides` at `plane_temperatures`, `plane_chains` of them for `plane_sweeps`.
    """

    patterns: tuple[int, ...] = (1, 2, 3, 4)
    windows: tuple[int, ...] = (2, 3, 4)
    penalties: tuple[float, ...] = (0.5, 1.0, 2.0)
    temperatures: tuple[float, ...] = (0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
    lengths: tuple[int, ...] = (10, 30, 100, 300)
    sampled: tuple[Sampled, ...] = (
        Sampled(patterns=2, window=2, temperature=0.3),
        Sampled(patterns=4, window=2, temperature=0.25),
        Sampled(patterns=2, window=3, temperature=0.6),
    )
    chains: int = 256
    sweeps: int = 2000
    widths: tuple[int, ...] = (1, 2)
    models: int = 20
    sides: tuple[int, ...] = (16, 32)
    plane_temperatures: tuple[float, ...] = (0.8, 1.0, 1.4, 1.8, 2.0, 2.6, 3.2)
    plane_chains: int = 128
    plane_sweeps: int = 500
    seeds: tuple[int, ...] = tuple(range(10))

    def __post_init__(self) -> None:
        for field in ("patterns", "windows", "lengths", "widths", "sides"):
            least = {"windows": 2, "lengths": 1 + max(self.windows, default=0), "sides": 3}.get(field, 1)
            for number in _different(field, getattr(self, field)):
                whole_number(field, number, least)
        if max(self.patterns) < 2:
            raise InputError("patterns", self.patterns, "walls need two patterns: add a number of at least 2")
        for field in ("penalties", "temperatures", "plane_temperatures"):
            numbers = _different(field, getattr(self, field))
            if not all(0 < number < float("inf") for number in numbers):
                raise InputError(field, numbers, "give one or more finite numbers above 0")
        for setting in _different("sampled", self.sampled):
            if setting.lengths[-1] > 100_000:
                raise InputError("sampled", setting, "ten crossing lengths are too long: make it hotter")
        require_seeds("seeds", self.seeds)
        for field in ("chains", "sweeps", "models", "plane_chains", "plane_sweeps"):
            whole_number(field, getattr(self, field), 1)


def _different(field: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
    if not values or len(set(values)) < len(values):
        raise InputError(field, values, "give one or more different ones")
    return values


PRESETS = {
    "smoke": Config(
        patterns=(1, 2, 3),
        windows=(2, 3),
        penalties=(1.0,),
        temperatures=(0.3, 5.0),
        lengths=(10, 40),
        sampled=(
            Sampled(patterns=2, window=2, temperature=0.5),
            Sampled(patterns=3, window=2, temperature=0.4),
        ),
        chains=40,
        sweeps=100,
        models=2,
        sides=(8,),
        plane_temperatures=(1.0, 1.8, 3.2),
        plane_chains=20,
        plane_sweeps=60,
        seeds=(0, 1),
    ),
    "default": Config(),
    "paper": Config(models=200, sides=(16, 32, 64), plane_sweeps=2000, seeds=tuple(range(30))),
}


def parts(config: Config) -> list[str]:
    """The exact numbers about chains, maps and the plane, and two parts per seed."""
    return [
        "chains",
        "maps",
        "exact",
        *(f"{what}-{seed}" for seed in config.seeds for what in ("sampled", "plane")),
    ]


def run(config: Config, part: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Measure one part."""
    del artifacts
    what, _, seed = part.partition("-")
    if what == "chains":
        for family in families(config.patterns, config.windows, config.penalties):
            yield from chain_rows(family, config.temperatures, config.lengths)
    elif what == "maps":
        yield from map_rows(config.widths, config.models)
    elif what == "exact":
        yield from closed_form_rows()
        yield from control_rows()
        yield from curve_rows(config.sampled, 40)
        yield from exact_plane_rows()
    elif what == "sampled":
        yield from sampled_rows(config.sampled, config.chains, config.sweeps, int(seed))
    else:
        yield from plane_rows(
            config.sides, config.plane_temperatures, config.plane_chains, config.plane_sweeps, int(seed)
        )


STUDY = Study(
    name="potts-coherence",
    doc=__doc__,
    source="Document on the Potts chain: Theorems 1.1, 1.2 and 2.1, Corollary 1.2.1, equations 2 to 10",
    version=1,
    presets=PRESETS,
    parts=parts,
    lane=lambda part: part.partition("-")[2] or part,
    run=run,
    claims=(*CHAIN_CLAIMS, *MAP_CLAIMS),
    tables=TABLES,
    figures=FIGURES,
)
