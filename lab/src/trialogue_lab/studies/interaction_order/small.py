"""Measurements on small random distributions, whose sequences are all enumerated."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data import ManyBody
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.randomness import derive_seed
from trialogue.training import Displacement, TrainingConfig, log_steps, train
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.models.self_attention import SelfAttention, SelfAttentionConfig
from trialogue_lab.studies.interaction_order.config import DEPTHS, Config
from trialogue_lab.studies.interaction_order.distributions import (
    StaircaseDistribution,
    make_population,
    sample_staircase,
)
from trialogue_lab.studies.interaction_order.logit_spectrum import compute_logit_spectrum
from trialogue_lab.training.population import population_loss

DISPLACEMENT_INTERVAL = 10
"""Number of steps between measurements of displacements."""
PLATEAU_TOLERANCE = 0.01
"""Maximum distance in nats between a loss and the plateau that it belongs to."""
ONSET_SHARE = 0.1
"""Fraction of its final displacement above which a layer counts as learning."""
_CURVE_POINTS = 70
_INITIAL_SCALES = (0.05, 0.1, 0.2)

Losses = NDArray[np.float64]


def measure_small(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Train and measure networks on random distributions whose sequences can be enumerated.

    Args:
        config: Settings of the run.
        seed: Seed of the distributions and of the networks.

    Yields:
        Rows of several kinds: about the distribution, the trainings, single attention layers, the interaction
            orders of random networks, and the effect of exchanging two layers.
    """
    stairs = sample_staircase(config, seed)
    yield {"kind": "law", "draws": stairs.draws, **stairs.bounds} | {
        f"share_{order}": float(share) for order, share in enumerate(stairs.model.variance_by_order())
    }
    yield from measure_staircase(config, stairs, seed)
    yield from measure_pairs(config, seed)
    yield from measure_spectra(config, seed)
    yield from measure_exchange(config, stairs, seed)


def make_network(config: Config, layers: int, seed: int, scale: float | None = None) -> FactoredAttention:
    """Return an untrained network with factored attention for a small distribution.

    In factored attention, the weights depend on positions only and not on tokens.

    Args:
        config: Number of tokens per sequence, and size of the vocabulary.
        layers: Number of layers.
        seed: Seed of the initial weights.
        scale: Initial scale of the weights. None for `config.initial_scale`.
    """
    initial = config.initial_scale if scale is None else scale
    shape = FactoredAttentionConfig(
        vocab_size=config.vocab_size, sites=config.sites, layers=layers, initial_scale=initial
    )
    return FactoredAttention(shape, derive_seed(seed, "interaction-order", "weights", layers))


def measure_staircase(config: Config, stairs: StaircaseDistribution, seed: int) -> MeasuredRows:
    """Train networks with one to three layers on a random distribution in which up to four tokens interact.

    Args:
        config: Settings of the trainings.
        stairs: The distribution, with the lowest losses of simple predictors.
        seed: Seed of the initial weights.

    Yields:
        One row per network with its final loss. "onset_k" is the training step at which layer k begins to learn.
        "stay_k" is the number of steps for which the loss stays near the final loss of the network with k layers,
        divided by the number of steps of the preceding decrease. Further rows have the loss by step.
    """
    finals: dict[int, float] = {}
    for layers in DEPTHS:
        losses, steps, moved = train_network(config, stairs, layers, seed)
        finals[layers] = float(losses[-1])
        row = {"kind": "training", "layers": layers, "loss": finals[layers], **stairs.bounds}
        onsets = {f"onset_{layer + 1}": steps[find_onset(moved[:, layer])] for layer in range(layers)}
        ratios = compute_plateau_ratios(losses, [finals[below] for below in range(1, layers)])
        yield row | onsets | {f"stay_{below}": ratio for below, ratio in enumerate(ratios, 1)}
        for place in (0, *log_steps(len(steps) - 1, _CURVE_POINTS)):
            curve = {f"moved_{layer + 1}": float(moved[place, layer]) for layer in range(layers)}
            step = steps[place]
            yield {"kind": "curve", "layers": layers, "step": step, "loss": float(losses[step]), **curve}


def train_network(
    config: Config, stairs: StaircaseDistribution, layers: int, seed: int
) -> tuple[Losses, list[int], Losses]:
    """Train a network on all sequences of a small distribution, without sampling error.

    Args:
        config: Settings of the training.
        stairs: The distribution.
        layers: Number of layers.
        seed: Seed of the initial weights.

    Returns:
        Losses (steps + 1,) in nats before each step and after the last one, the recorded steps, and the mean squared
        distances (recorded steps, layers) of each layer's weights from their initial values.
    """
    net, population = make_network(config, layers, seed), stairs.population
    training = config.training(layers, len(population), seed)
    steps = list(range(0, training.steps + 1, DISPLACEMENT_INTERVAL))
    displacement = Displacement(net, steps, FactoredAttention.matrices)
    result = train(net, population, training, loss=population_loss, observer=displacement, progress=False)
    with torch.no_grad():
        last = float(population_loss(net, *population(0)))
    moved = torch.stack([displacement.displacements[step] for step in steps]).numpy()
    return np.append(result.losses.double().numpy(), last), steps, moved


def find_onset(moved: Losses) -> int:
    """Find the time at which a layer begins to learn.

    It is the first time at which the displacement of its weights exceeds a tenth of the final value.

    Args:
        moved: Mean squared changes (times,) of the layer's weights since the initial time.

    Returns:
        Index of the time.
    """
    return int(np.argmax(moved > ONSET_SHARE * moved[-1]))


def compute_plateau_ratios(losses: Losses, levels: Sequence[float]) -> list[float]:
    """Measure the plateaus of a loss curve: how long the loss stays at each level, relative to the decrease before it.

        ratio = (steps within 0.01 nats of the level) / (steps of the decrease from the previous level)

    Both numbers of steps are at least one.

    Args:
        losses: Losses (steps + 1,) in nats.
        levels: Levels in nats, in descending order.

    Returns:
        One ratio per level.
    """
    found, before = [], 0
    for level in levels:
        later = np.arange(before, len(losses))
        below = later[losses[before:] < level - PLATEAU_TOLERANCE]
        left = int(below[0]) if len(below) else len(losses)
        above = later[(losses[before:] > level + PLATEAU_TOLERANCE) & (later < left)]
        first = int(above[-1]) + 1 if len(above) else before
        found.append(max(1, left - first) / max(1, first - before) if before < len(losses) else 1 / before)
        before = left
    return found


def measure_pairs(config: Config, seed: int) -> MeasuredRows:
    """Train single attention layers on a random distribution in which only pairs of tokens interact.

    One layer has factored attention, whose weights do not depend on the tokens. The other layer has standard attention.

    Args:
        config: Settings of the training.
        seed: Seed of the distribution and the initial weights.

    Yields:
        One row with both final losses. "couplings" is the correlation of the learned attention weights with the true
        interactions between positions. "similarities" is the correlation of the learned values with the true
        similarities between token values.
    """
    random: dict[str, Any] = {"order": 2, "rank": config.rank, "scale": config.scale}
    stream = derive_seed(seed, "interaction-order", "pairs")
    model = ManyBody.random(config.sites, config.vocab_size, **random, seed=stream)
    population = make_population(model)
    stream = derive_seed(seed, "interaction-order", "pairs", "weights")
    shape: dict[str, Any] = {"vocab_size": model.vocab_size, "sites": model.sites}
    factored = FactoredAttention(FactoredAttentionConfig(**shape, initial_scale=0.3), stream)
    standard = SelfAttention(SelfAttentionConfig(**shape), stream)
    training = TrainingConfig(
        steps=config.pair_steps,
        batch_size=len(population),
        learning_rate=0.03,
        weight_decay=0.0,
        warmup_steps=min(50, config.pair_steps),
        gradient_clip=None,
        seed=seed,
        bf16=False,
    )
    row: dict[str, Any] = {"kind": "pairs", "entropy": population.entropy}
    for name, net in (("factored", factored), ("standard", standard)):
        train(net, population, training, loss=population_loss, progress=False)
        with torch.no_grad():
            row[name] = float(population_loss(net, *population(0)))
        row[f"{name}_parameters"] = sum(parameter.numel() for parameter in net.parameters())
    ((attention, values),) = factored.matrices(torch.float64)
    apart = ~torch.eye(model.sites, dtype=torch.bool)
    couplings, similarities = model.positions.T @ model.positions, model.vectors.T @ model.vectors
    # A constant that is added for all values of the masked token does not change the distribution.
    yield row | {
        "couplings": compute_correlation(attention[apart], couplings[apart]),
        "similarities": compute_correlation(values - values.mean(0), similarities - similarities.mean(0)),
    }


def compute_correlation(found: Tensor, exact: Tensor) -> float:
    """Return the absolute Pearson correlation between the entries of two tensors.

    Args:
        found: Learned tensor.
        exact: True tensor of the same shape.
    """
    both = torch.stack((found.detach().flatten(), exact.flatten()))
    return abs(float(torch.corrcoef(both)[0, 1]))


def measure_spectra(config: Config, seed: int) -> MeasuredRows:
    """Compute the largest number of tokens that interact in random networks with one to four layers.

    Args:
        config: Number of tokens per sequence.
        seed: Seed of the weights.

    Yields:
        One row per network, with or without layer norm. "bodies" is the largest number of interacting tokens. "top" is
        the strength of interactions of 2^(layers - 1) + 1 tokens, and "beyond" that of more tokens. Both are relative
        to the strongest interaction.
    """
    sites = config.spectrum_sites
    for layers in (1, 2, 3, 4):
        for norm in (False, True):
            shape = FactoredAttentionConfig(vocab_size=2, sites=sites, layers=layers, layer_norm=norm)
            net = FactoredAttention(shape, derive_seed(seed, "interaction-order", "spectrum", layers))
            spectrum = compute_logit_spectrum(net, sites)
            shares = spectrum / spectrum.max()
            top, most = 2 ** (layers - 1), 2 ** (layers - 1) + 1
            yield {
                "kind": "spectrum",
                "layers": layers,
                "norm": norm,
                "top": float(shares[top]),
                "beyond": float(shares[most:].max()),
                # The interacting tokens are those of a term and the masked token.
                "bodies": int((shares > 1e-10).nonzero().max()) + 1,
                "bound": most,
                "printed": layers + 1,
            }


def measure_exchange(config: Config, stairs: StaircaseDistribution, seed: int) -> MeasuredRows:
    """Measure the change of the logits of a three-layer network if its first two layers are exchanged.

    Args:
        config: Settings of the networks.
        stairs: The distribution whose sequences are evaluated.
        seed: Seed of the initial weights.

    Yields:
        One row per initial scale of the weights. "change" is the norm of the change of the logits, divided by the norm
        of the contribution of both layers.
    """
    states = stairs.model.states()
    for scale in _INITIAL_SCALES:
        net = make_network(config, 3, seed, scale)
        with torch.no_grad():
            before = net.site_logits(states)
            for parameters in (net.attention, net.values):
                parameters[0], parameters[1] = parameters[1], parameters[0]
            after = net.site_logits(states)
            for parameter in (*net.attention[:2], *net.values[:2]):
                parameter.zero_()
            linear = net.site_logits(states)
        change = (after - before).norm() / (before - linear).norm()
        yield {"kind": "exchange", "scale": scale, "change": float(change)}
