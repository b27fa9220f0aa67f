"""Settings of the study: random trees, chains of Metropolis-Hastings steps, and Markov models of long texts."""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Different, Increasing, Positive, Probability, Seeds, Settings

ONE_LENGTH: Final = "one length"
EARLY_ENDS: Final = "early ends"
CORRECTED: Final = "corrected"
RELEASED: Final = "released"
WEIGHTED: Final = "16 by weight"
PARTICLES: Final = "sequential Monte Carlo"
METROPOLIS: Final = "Metropolis"
EXACT: Final = "exact draws"
DRAWS: Final = 16
"""Number of weighted draws, and of particles."""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    The target of the samplers is p(x)^alpha, normalized, for a text x with probability p(x) under a random model. In a
    random tree, every prefix has its own next-token distribution over three tokens. In a Markov model, the next token
    depends on the last token only.

    Args:
        seeds: Seeds of the random trees.
        horizon: Number of tokens of the texts of these trees. All prefixes are enumerated.
        powers: Powers alpha. Claims are about the largest one. Claims about chains on texts of different lengths are
            about the smallest one.
        futures: Number of models with the same first next-token distribution, which are used to bound the accuracy of
            local rules.
        rollouts: Numbers of sampled completions per candidate token, for lookahead.
        rollout_draws: Number of independent sets of completions over which the output distribution of lookahead is
            averaged.
        chain_seeds: Seeds of the random trees on which Metropolis-Hastings chains are computed exactly.
        chain_horizon: Maximum length of the texts of these models.
        end: Probability that a text ends after each token, in models whose texts have different lengths.
        steps: Numbers of Metropolis-Hastings steps per block.
        markov_seeds: Seeds of the Markov models.
        lengths: Lengths of the texts of the Markov models.
        outputs: Number of outputs of each sampler on each Markov model.
        ended_power: Power alpha for Markov models whose texts have different lengths. With a larger power, nearly all
            texts of the target have one or two tokens, which the corrected chain rarely proposes.
        ended_length: Maximum length of the texts of these models.
        ended_steps: Numbers of Metropolis-Hastings steps per block on these models, in 16 blocks.
        ended_outputs: Number of outputs of each chain on these models.
    """

    seeds: Seeds = tuple(range(1, 25))
    horizon: Annotated[int, Interval(ge=3, le=8)] = 6
    powers: Increasing[Positive] = (2.0, 4.0)
    futures: Annotated[int, Ge(2)] = 32
    rollouts: Increasing[Count] = (1, 4, 8, 16)
    rollout_draws: Annotated[int, Ge(2)] = 1000
    chain_seeds: Seeds = tuple(range(1, 41))
    chain_horizon: Annotated[int, Interval(ge=2, le=5)] = 4
    end: Probability = 0.15
    steps: Increasing[Count] = (1, 3, 10, 30, 100, 1000)
    markov_seeds: Seeds = tuple(range(1, 13))
    lengths: Different[Annotated[int, Ge(4)]] = (8, 64, 256)
    outputs: Annotated[int, Ge(20)] = 200
    ended_power: Positive = 2.0
    ended_length: Annotated[int, Ge(16)] = 32
    ended_steps: Increasing[Count] = (10,)
    ended_outputs: Annotated[int, Ge(20)] = 256

    def check(self) -> None:
        """Raise `InputError` if fields contradict each other."""
        if self.powers[-1] <= 1:
            raise InputError("powers", self.powers, "include a power above 1")


PRESETS = {
    "smoke": Config(
        seeds=(0,),
        horizon=4,
        futures=4,
        rollouts=(1, 8, 16),
        rollout_draws=100,
        chain_seeds=(0,),
        chain_horizon=3,
        steps=(1, 10, 100),
        markov_seeds=(0,),
        lengths=(4, 8),
        outputs=20,
        ended_length=16,
        ended_steps=(1,),
        ended_outputs=20,
    ),
    "pilot": Config(
        seeds=tuple(range(1001, 1007)),
        chain_seeds=tuple(range(1001, 1011)),
        markov_seeds=tuple(range(1001, 1004)),
        outputs=50,
        ended_outputs=128,
    ),
    "default": Config(),
    # The sizes of `default` with other seeds. By the rows of `default`, these numbers of models decide claims that
    # `default` leaves undecided.
    "night": Config(
        seeds=tuple(range(101, 197)),
        chain_seeds=tuple(range(101, 141)),
        markov_seeds=tuple(range(101, 119)),
    ),
}
