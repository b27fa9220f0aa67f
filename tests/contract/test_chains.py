"""Requirements on every chain in the registry."""

from collections.abc import Iterator
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from samplers.chains.small_models import Conditionals, Energies, random_ising, random_joint
from trialogue.data import Ising, PottsChain
from trialogue.oracles import whole_sequences
from trialogue.samplers import CHAINS, ChainRule, IndependentParallel, MaskedMetropolis
from trialogue.samplers.exact import transition_matrix
from trialogue.testing import chains as distributions

BLOCKS = ((0, 1), (2,), (1, 3), (0, 3))


def distribution(tokens):
    """Return a distribution over four blocks that depends on the state."""
    first, last, total = tokens[:, 0], tokens[:, -1], tokens.sum(1)
    return torch.stack((1 + first, 1 + 2 * last, 1 + total, 2 - first), 1).double().log().softmax(1)


REQUIRED = {
    "block-gibbs": {"block_size": 2},
    "block-dynamics": {"blocks": BLOCKS, "weights": (1.0, 2.0, 0.5, 0.25)},
    "adaptive-block-dynamics": {"blocks": BLOCKS, "distribution": distribution},
}
"""Required fields of chains."""

NAMES = [name for name in CHAINS if name != "refinement"]
"""Refinement has no energy and is tested in `tests/samplers/chains/test_refinement.py`."""


def variants(name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the default settings and, one at a time, every other option of the fields."""
    yield name, {}
    for field, kind in get_type_hints(CHAINS[name]).items():
        for option in get_args(kind)[1:] if get_origin(kind) is Literal else ():
            yield name, {field: option}


@pytest.fixture(
    params=[variant for name in NAMES for variant in variants(name)],
    ids=lambda variant: "-".join((variant[0], *variant[1].values())),
)
def chain(request):
    name, options = request.param
    return CHAINS[name](**REQUIRED.get(name, {}), **options)


ISING = random_ising(1, 4)
MODELS = {
    "ising": ISING,
    "clique": Ising.clique(4, 3, coupling=0.4, field=torch.tensor([0.3, -0.2, 0.5, 0.1])),
    "energy": Energies(random_joint(2, 3, 4)),
    "energy-of-ising": Energies(ISING.probabilities().view(2, 2, 2, 2)),
    "potts": PottsChain(-random_joint(4, 2, 3).log()).at(4, temperature=2.0),
    "masked": Conditionals(random_joint(3, 2, 4)),
}


def model_for(chain, name):
    """Return the model, with the chain rule if the chain draws blocks of a masked oracle."""
    model = MODELS[name]
    sizes = getattr(chain, "block_size", None) or getattr(chain, "blocks", None)
    return ChainRule(model) if name == "masked" and sizes else model


def target(chain, name):
    model = MODELS[name]
    if isinstance(chain, MaskedMetropolis):
        states = whole_sequences(model.vocab_size, 4)
        return (-chain.energy(model, states)).softmax(0)
    return model.probabilities()


@pytest.mark.parametrize("name", MODELS)
def test_the_target_is_invariant(chain, name):
    model = model_for(chain, name)
    if isinstance(chain, IndependentParallel):
        assert distributions.stationarity_error(chain, model, target=target(chain, name)) > 1e-4
    else:
        distributions.check_invariance(chain, model, target=target(chain, name), tolerance=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_the_transitions_are_probabilities(chain, name):
    distributions.check_transitions(chain, model_for(chain, name))


def test_an_energy_and_its_enumeration_are_the_same_model(chain):
    """The conditionals and block draws of the Ising model equal those enumerated from its energies."""
    own = transition_matrix(chain, MODELS["ising"])
    listed = transition_matrix(chain, MODELS["energy-of-ising"])
    torch.testing.assert_close(own, listed, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "distribution",
    [
        distributions.check_independence,
        distributions.check_stopping,
        distributions.check_repeatability,
        distributions.check_samples,
        distributions.check_trace,
        distributions.check_frequencies,
    ],
    ids=lambda distribution: distribution.__name__.removeprefix("check_"),
)
def test_copies_run_as_independent_chains(chain, distribution):
    """This holds even if a fixed order of Metropolis is not ergodic on the model."""
    distribution(chain, ISING)
