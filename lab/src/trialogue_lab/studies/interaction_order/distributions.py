"""The random distributions that networks are trained on, and the lowest losses of simple predictors."""

from dataclasses import dataclass
from itertools import count

from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue.randomness import derive_seed
from trialogue_lab.studies.interaction_order.config import Config
from trialogue_lab.theory.product_forms import product_form_bound
from trialogue_lab.training.population import MaskedPopulation

_MAX_DRAWS = 1000


@dataclass(frozen=True, eq=False)
class StaircaseDistribution:
    """Random distribution in which up to four tokens interact, with the lowest losses of simple predictors.

    The loss of a trained network decreases in steps on it, like a staircase. A loss is the mean negative
    log-probability of a masked token given the others. A two-body predictor is a product of functions of at
    most two tokens, and a three-body predictor of at most three.

    Args:
        model: The distribution.
        population: All sequences of the distribution with one masked token, and their probabilities.
        two: Lowest loss of two-body predictors, in nats.
        three: Lowest loss of three-body predictors, in nats.
        draws: Number of distributions that were sampled until the losses were far enough apart.
    """

    model: ManyBody
    population: MaskedPopulation
    two: float
    three: float
    draws: int

    @property
    def four(self) -> float:
        """Lowest loss of any predictor, in nats. It is the conditional entropy of a token given the others."""
        return self.population.entropy

    @property
    def bounds(self) -> dict[str, float]:
        """Lowest losses in nats, with the keys "two", "three" and "four" for the number of interacting tokens."""
        return {"two": self.two, "three": self.three, "four": self.four}


def make_population(model: ManyBody) -> MaskedPopulation:
    """List all sequences of a small distribution with one masked token, together with their probabilities.

    Args:
        model: The distribution, whose sequences are enumerated.
    """
    return MaskedPopulation(model.probabilities().view([model.vocab_size] * model.sites))


def sample_staircase(config: Config, seed: int) -> StaircaseDistribution:
    """Sample a random distribution for which interactions of two, three and four tokens all matter.

    Distributions are sampled until the lowest losses with interactions of at most two, three and four tokens differ by
    more than `config.gap`. The choice depends on no trained network.

    Args:
        config: Size of the distribution, and the required difference of the losses in nats.
        seed: Seed of the distributions.

    Returns:
        The distribution with these losses.

    Raises:
        InputError: If none of the first 1,000 distributions qualifies.
    """
    for draw in count():
        if draw == _MAX_DRAWS:
            hint = f"the bounds of {_MAX_DRAWS} distributions are closer: reduce it"
            raise InputError("gap", config.gap, hint)
        stream = derive_seed(seed, "interaction-order", "law", draw)
        shape = config.sites, config.vocab_size
        model = ManyBody.random(*shape, rank=config.rank, scale=config.scale, seed=stream)
        population = make_population(model)
        two = product_form_bound(population, 2, config.starts[0], seed)
        if two - population.entropy < 2 * config.gap:
            continue
        three = product_form_bound(population, 3, config.starts[1], seed)
        if min(two - three, three - population.entropy) > config.gap:
            return StaircaseDistribution(model, population, two, three, draw + 1)
    raise AssertionError
