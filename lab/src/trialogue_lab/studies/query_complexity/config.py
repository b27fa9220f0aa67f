"""Settings of the study: string lengths, numbers of simulations, and knapsack sizes."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval, MinLen, MultipleOf

from trialogue_lab.ledger import Count, Increasing, Seeds, Settings

ShortLengths = Increasing[Annotated[int, Interval(ge=1, le=12)]]
Lengths = Annotated[Increasing[Annotated[int, Interval(ge=2, le=60)]], MinLen(2)]
OptimumLengths = Annotated[Increasing[Annotated[int, Interval(ge=1, le=16)]], MinLen(2)]
EvenLengths = Annotated[Increasing[Annotated[int, Interval(ge=2, le=40), MultipleOf(2)]], MinLen(2)]
Digits = Annotated[Increasing[Annotated[int, Interval(ge=1, le=200)]], MinLen(2)]


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    The hidden string of Theorem 3.1.1 is the only valid string with positive probability under a model. A knapsack is a
    list of weights and a total. Its solution is a subset of the weights with this sum.

    Args:
        optimum_lengths: Lengths of hidden strings for which the optimal search is computed by dynamic programming.
        hidden_lengths: Lengths of hidden strings for which sampling with a perfect verifier is computed.
        caps: Maximum numbers of rejections at one position, after which tokenwise rejection fails.
        search_lengths: Lengths of hidden strings for which a random search is simulated.
        searches: Number of hidden strings per length and seed.
        search_seeds: Seeds of the simulated searches.
        zero_lengths: String lengths in Proposition 3.1.1, in which only the string of zeros is valid.
        walked_lengths: String lengths in Proposition 3.1.1 for which the samplers are simulated.
        walks: Number of outputs per sampler, length and seed.
        walk_seeds: Seeds of the simulated samplers.
        law_lengths: String lengths in Proposition 3.1.2, in which all strings except the string of ones are valid.
        dyck_lengths: Lengths of Dyck strings (balanced brackets) with two types of brackets.
        verified_lengths: Lengths of hidden strings for which a string is generated with the verifier alone.
        knapsacks: Number of random knapsacks, with up to 10 weights, that are solved by constrained generation.
        superincreasing: Number of knapsacks that are solved greedily. Each weight is at least the sum of the previous
            ones.
        lattice_size: Number of weights of the knapsacks that are solved by lattice reduction.
        lattice_digits: Numbers of binary digits of the weights of these knapsacks.
        lattices: Number of these knapsacks per number of digits and seed.
        lattice_seeds: Seeds of these knapsacks.
    """

    optimum_lengths: OptimumLengths = tuple(range(1, 15))
    hidden_lengths: Lengths = tuple(range(2, 33, 2))
    caps: Increasing[Count] = (1, 4, 16)
    search_lengths: Increasing[Annotated[int, Interval(ge=2, le=12)]] = (2, 3, 4, 5, 6, 7, 8)
    searches: Count = 100
    search_seeds: Seeds = tuple(range(20))
    zero_lengths: Increasing[Annotated[int, Interval(ge=1, le=40)]] = (1, 2, 4, 6, 8, 12, 16, 24, 32)
    walked_lengths: ShortLengths = (2, 4, 6)
    walks: Count = 200
    walk_seeds: Seeds = tuple(range(20))
    law_lengths: ShortLengths = tuple(range(1, 11))
    dyck_lengths: EvenLengths = (2, 4, 8, 12, 16, 20, 24, 28, 32)
    verified_lengths: Increasing[Annotated[int, Interval(ge=1, le=8)]] = (1, 2, 4, 6)
    knapsacks: Count = 240
    superincreasing: Count = 3000
    lattice_size: Annotated[int, Interval(ge=4, le=40)] = 20
    lattice_digits: Digits = (10, 15, 20, 25, 30, 40, 60, 80)
    lattices: Count = 10
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
