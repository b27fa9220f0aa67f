"""Settings of the study: lengths of strings, how often searchers and walks run, and the knapsacks."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval, MinLen, MultipleOf

from trialogue_lab.ledger import Count, Increasing, Seeds, Settings

Listed = Increasing[Annotated[int, Interval(ge=1, le=12)]]
Lengths = Annotated[Increasing[Annotated[int, Interval(ge=2, le=60)]], MinLen(2)]
Optimal = Annotated[Increasing[Annotated[int, Interval(ge=1, le=16)]], MinLen(2)]
Even = Annotated[Increasing[Annotated[int, Interval(ge=2, le=40), MultipleOf(2)]], MinLen(2)]
Digits = Annotated[Increasing[Annotated[int, Interval(ge=1, le=200)]], MinLen(2)]


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    optimum_lengths: Optimal = tuple(range(1, 15))
    """D of Theorem 3.1.1 for which its dynamic program is run."""
    hidden_lengths: Lengths = tuple(range(2, 33, 2))
    """D of Theorem 3.1.1 for which walks with a perfect verifier are computed."""
    caps: Increasing[Count] = (1, 4, 16)
    """Rejections at one position after which tokenwise rejection fails."""
    search_lengths: Increasing[Annotated[int, Interval(ge=2, le=12)]] = (2, 3, 4, 5, 6, 7, 8)
    """D for which the searcher runs."""
    searches: Count = 100
    """Hidden strings that are searched for, per length and seed."""
    search_seeds: Seeds = tuple(range(20))
    zero_lengths: Increasing[Annotated[int, Interval(ge=1, le=40)]] = (1, 2, 4, 6, 8, 12, 16, 24, 32)
    """D of Proposition 3.1.1."""
    walked_lengths: Listed = (2, 4, 6)
    """D of Proposition 3.1.1 for which the walks run."""
    walks: Count = 200
    """Runs of each walk, per length and seed."""
    walk_seeds: Seeds = tuple(range(20))
    law_lengths: Listed = tuple(range(1, 11))
    """D of Proposition 3.1.2."""
    dyck_lengths: Even = (2, 4, 8, 12, 16, 20, 24, 28, 32)
    """Lengths of Dyck strings with two types of brackets."""
    verified_lengths: Increasing[Annotated[int, Interval(ge=1, le=8)]] = (1, 2, 4, 6)
    """D of Theorem 3.1.1 for which strings are made with a verifier alone, one for each hidden string."""
    knapsacks: Count = 240
    """Knapsacks of up to 10 weights that are solved by generating."""
    superincreasing: Count = 3000
    """Superincreasing ones that are solved by a greedy pass."""
    lattice_size: Annotated[int, Interval(ge=4, le=40)] = 20
    """Weights of the knapsacks that are solved by lattices."""
    lattice_digits: Digits = (10, 15, 20, 25, 30, 40, 60, 80)
    """Binary digits of their weights."""
    lattices: Count = 10
    """Knapsacks per number of digits and seed."""
    lattice_seeds: Seeds = tuple(range(12))


_PILOT_SEEDS = tuple(range(100, 108))

PRESETS = {
    "smoke": Config(
        optimum_lengths=tuple(range(1, 7)),
        hidden_lengths=(2, 4, 8),
        caps=(1, 4),
        search_lengths=(2, 4),
        searches=4,
        search_seeds=(0, 1),
        zero_lengths=(1, 2, 4),
        walked_lengths=(2, 4),
        walks=10,
        walk_seeds=(0, 1),
        law_lengths=(1, 2, 3),
        dyck_lengths=(2, 4, 8),
        verified_lengths=(1, 3),
        knapsacks=6,
        superincreasing=20,
        lattice_size=8,
        lattice_digits=(4, 8, 32),
        lattices=2,
        lattice_seeds=(0, 1),
    ),
    "pilot": Config(search_seeds=_PILOT_SEEDS, walk_seeds=_PILOT_SEEDS, lattice_seeds=_PILOT_SEEDS),
    "default": Config(),
}
