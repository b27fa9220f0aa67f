"""Small laws, trained on whole: the staircase, one layer on two bodies, and the orders that an architecture has."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.models.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.randomness import seed_of
from trialogue.training import Displacement, TrainingConfig, log_steps, train
from trialogue_lab.models.self_attention import SelfAttention, SelfAttentionConfig
from trialogue_lab.studies.interaction_order.config import DEPTHS, Config
from trialogue_lab.studies.interaction_order.laws import Staircase, pair_law, population_of, staircase
from trialogue_lab.studies.interaction_order.logit_spectrum import logit_spectrum
from trialogue_lab.training.population import population_loss

EVERY = 10
"""Displacements are measured after so many steps."""
NEAR = 0.01
"""Nats within which a loss counts as that of a plateau: the grade of the claims."""
ONSET = 0.1
"""The share of its final displacement from which on a layer has set out."""
_CURVE = 70
_SCALES = (0.05, 0.1, 0.2)

Losses = NDArray[np.float64]


def measure_small(config: Config, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    """The law of a seed, its networks of one, two and three layers, and what is checked beside them."""
    stairs = staircase(config, seed)
    yield {"kind": "law", "draws": stairs.draws, **bounds(stairs)} | {
        f"share_{order}": float(share) for order, share in enumerate(stairs.law.variance_by_order())
    }
    yield from staircase_rows(config, stairs, seed)
    yield from pair_rows(config, seed)
    yield from spectrum_rows(config, seed)
    yield from exchange_rows(config, stairs, seed)


def bounds(stairs: Staircase) -> dict[str, float]:
    """The least losses of two, three and four bodies, in nats."""
    return {"two": stairs.two, "three": stairs.three, "four": stairs.four}


def network(config: Config, layers: int, seed: int, scale: float | None = None) -> FactoredAttention:
    """A network for the small laws with its initial weights."""
    shape = FactoredAttentionConfig(
        vocab_size=config.vocab_size,
        sites=config.sites,
        layers=layers,
        initial_scale=config.initial_scale if scale is None else scale,
    )
    return FactoredAttention(shape, seed_of(seed, "interaction-order", "weights", layers))


def staircase_rows(config: Config, stairs: Staircase, seed: int) -> Iterator[dict[str, Any]]:
    """Networks of growing depth: final losses, when their layers set out, and where the loss stood still on its way."""
    finals: dict[int, float] = {}
    for layers in DEPTHS:
        losses, steps, moved = trained(config, stairs, layers, seed)
        finals[layers] = float(losses[-1])
        row = {"kind": "training", "layers": layers, "loss": finals[layers], **bounds(stairs)}
        onsets = {f"onset_{layer + 1}": steps[onset(moved[:, layer])] for layer in range(layers)}
        standing = stays(losses, [finals[below] for below in range(1, layers)])
        yield row | onsets | {f"stay_{below}": ratio for below, ratio in enumerate(standing, 1)}
        for place in (0, *log_steps(len(steps) - 1, _CURVE)):
            curve = {f"moved_{layer + 1}": float(moved[place, layer]) for layer in range(layers)}
            step = steps[place]
            yield {"kind": "curve", "layers": layers, "step": step, "loss": float(losses[step]), **curve}


def trained(config: Config, stairs: Staircase, layers: int, seed: int) -> tuple[Losses, list[int], Losses]:
    """Losses before each step and after the last, and displacements (times, layers) at the steps that are returned.

    The loss is that of the whole law: it has no sampling error.
    """
    net, population = network(config, layers, seed), stairs.population
    training = config.training(layers, len(population), seed)
    steps = list(range(0, training.steps + 1, EVERY))
    watching = Displacement(net, steps, FactoredAttention.matrices)
    result = train(net, population, training, loss=population_loss, observer=watching, progress=False)
    with torch.no_grad():
        last = float(population_loss(net, *population(0)))
    moved = torch.stack([watching.displacements[step] for step in steps]).numpy()
    return np.append(result.losses.double().numpy(), last), steps, moved


def onset(moved: Losses) -> int:
    """The first place at which a displacement is more than a tenth of its last."""
    return int(np.argmax(moved > ONSET * moved[-1]))


def stays(losses: Losses, levels: Sequence[float]) -> list[float]:
    """How long a loss stays within 0.01 nats of each of falling `levels`, over the steps of the fall to it.

    The fall begins where the level before is left. Both are at least one step; what is not left by the end is counted
    to the end, and what is never reached has one step over all.
    """
    found, before = [], 0
    for level in levels:
        later = np.arange(before, len(losses))
        below = later[losses[before:] < level - NEAR]
        left = int(below[0]) if len(below) else len(losses)
        above = later[(losses[before:] > level + NEAR) & (later < left)]
        reached = int(above[-1]) + 1 if len(above) else before
        found.append(
            max(1, left - reached) / max(1, reached - before) if before < len(losses) else 1 / before
        )
        before = left
    return found


def pair_rows(config: Config, seed: int) -> Iterator[dict[str, Any]]:
    """One factored and one standard layer on a law of two bodies: losses, and whether J and U are recovered."""
    law = pair_law(config, seed)
    population = population_of(law)
    stream = seed_of(seed, "interaction-order", "pairs", "weights")
    vocab, sites = law.vocab_size, law.sites
    shape = FactoredAttentionConfig(vocab_size=vocab, sites=sites, initial_scale=0.3)
    factored = FactoredAttention(shape, stream)
    standard = SelfAttention(SelfAttentionConfig(vocab_size=vocab, sites=sites), stream)
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
    apart = ~torch.eye(law.sites, dtype=torch.bool)
    couplings, similarities = law.positions.T @ law.positions, law.vectors.T @ law.vectors
    # A constant for all values of the masked token changes no law.
    yield row | {
        "couplings": correlation(attention[apart], couplings[apart]),
        "similarities": correlation(values - values.mean(0), similarities - similarities.mean(0)),
    }


def correlation(found: Tensor, exact: Tensor) -> float:
    """The absolute correlation of two tensors' entries: a common sign and scale go to the other factor."""
    both = torch.stack((found.detach().flatten(), exact.flatten()))
    return abs(float(torch.corrcoef(both)[0, 1]))


def spectrum_rows(config: Config, seed: int) -> Iterator[dict[str, Any]]:
    """The interaction orders of random networks of one to four layers, over the largest, with and without a norm."""
    for layers in (1, 2, 3, 4):
        for norm in (False, True):
            shape = FactoredAttentionConfig(
                vocab_size=2, sites=config.spectrum_sites, layers=layers, layer_norm=norm
            )
            net = FactoredAttention(shape, seed_of(seed, "interaction-order", "spectrum", layers))
            spectrum = logit_spectrum(net, config.spectrum_sites)
            shares = spectrum / spectrum.max()
            top, most = 2 ** (layers - 1), 2 ** (layers - 1) + 1
            yield {
                "kind": "spectrum",
                "layers": layers,
                "norm": norm,
                "top": float(shares[top]),
                "beyond": float(shares[most:].max()),
                # Bodies: the tokens that a term is of, and the masked one.
                "bodies": int((shares > 1e-10).nonzero().max()) + 1,
                "bound": most,
                "printed": layers + 1,
            }


def exchange_rows(config: Config, stairs: Staircase, seed: int) -> Iterator[dict[str, Any]]:
    """How much the logits of three layers change where the first two are exchanged, relative to what these add.

    Both add squares of linear functions of the tokens; that one of them sees what the other adds is of higher order.
    """
    states = stairs.law.states()
    for scale in _SCALES:
        net = network(config, 3, seed, scale)
        before = net.site_logits(states)
        with torch.no_grad():
            for parameters in (net.attention, net.values):
                first, second = parameters[0].clone(), parameters[1].clone()
                parameters[0].copy_(second)
                parameters[1].copy_(first)
            after = net.site_logits(states)
            for parameters in (net.attention, net.values):
                parameters[0].zero_()
                parameters[1].zero_()
            linear = net.site_logits(states)
        change = (after - before).norm() / (before - linear).norm()
        yield {"kind": "exchange", "scale": scale, "change": float(change)}
