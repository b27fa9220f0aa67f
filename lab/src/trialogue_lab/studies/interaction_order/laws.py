"""The laws that networks are trained on, and the bounds that conditionals of fewer bodies have on them."""

from dataclasses import dataclass
from itertools import count

from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue.randomness import seed_of
from trialogue_lab.studies.interaction_order.config import Config
from trialogue_lab.theory.product_forms import product_form_bound
from trialogue_lab.training.population import MaskedPopulation

_MOST = 1000


@dataclass(frozen=True, eq=False)
class Staircase:
    """A law of four bodies: `two` and `three` are the least losses of product forms, `four` is its entropy (nats).

    `draws` counts the laws that were drawn until one had steps between them.
    """

    law: ManyBody
    population: MaskedPopulation
    two: float
    three: float
    draws: int

    @property
    def four(self) -> float:
        """The conditional entropy of a token: its own form has four bodies."""
        return self.population.entropy


def population_of(law: ManyBody) -> MaskedPopulation:
    """All of a law that can be listed."""
    return MaskedPopulation(law.probabilities().view([law.vocab_size] * law.sites))


def staircase(config: Config, seed: int) -> Staircase:
    """The first law of the stream of `seed` whose bounds by two, three and four bodies are `config.gap` apart.

    Nothing is trained to choose it. Raises `InputError` where none of a thousand is.
    """
    for draw in count():
        if draw == _MOST:
            raise InputError("gap", config.gap, f"none of {_MOST} laws has such steps: use a smaller one")
        stream = seed_of(seed, "interaction-order", "law", draw)
        law = ManyBody.random(
            config.sites, config.vocab_size, rank=config.rank, scale=config.scale, seed=stream
        )
        population = population_of(law)
        two = product_form_bound(population, 2, config.starts[0], seed)
        if two - population.entropy < 2 * config.gap:
            continue
        three = product_form_bound(population, 3, config.starts[1], seed)
        if min(two - three, three - population.entropy) > config.gap:
            return Staircase(law, population, two, three, draw + 1)
    raise AssertionError


def pair_law(config: Config, seed: int) -> ManyBody:
    """The law of two bodies that one layer is asked to recover."""
    stream = seed_of(seed, "interaction-order", "pairs")
    return ManyBody.random(
        config.sites, config.vocab_size, order=2, rank=config.rank, scale=config.scale, seed=stream
    )
