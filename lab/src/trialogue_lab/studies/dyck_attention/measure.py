"""The parts of a run: one network each, what it closes rightly, how balanced it is, and where it attends."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from trialogue_lab.analysis.attention_variation import stack_likeness, variation, with_uniform_attention
from trialogue_lab.analysis.closing_accuracy import closing_accuracy
from trialogue_lab.ledger import Part
from trialogue_lab.studies.dyck_attention.config import Config
from trialogue_lab.studies.dyck_attention.networks import (
    FAR,
    MINIMAL_ARMS,
    NESTED,
    SETTINGS,
    STANDARD_ARMS,
    TRAINED_LENGTH,
    Setting,
    pattern_rows,
    prefixes,
    sentences,
    trained,
    trained_words,
)
from trialogue_lab.theory.balance import balance_violation, inequality_chain, log_weight_decay

SENTENCE = 18
"""Brackets of the sentences of Table 2.6, which have 19 positions with the starting token"""
_DRAWN = 2
"""Networks of a setting whose attention is kept for a figure"""


def parts(config: Config) -> list[Part]:
    """One part for every network, and one for every setting of Table 2.6 with all of its networks."""
    networks = [
        arm_task(name, seed, partial(_network, config, name, seed))
        for arms, seeds in ((MINIMAL_ARMS, config.seeds), (STANDARD_ARMS, config.standard_seeds))
        for seed in seeds
        for name in arms
    ]
    settings = [
        Part(
            f"table-k{setting.types}-d{setting.depth}-{setting.layers}-layers",
            partial(_setting, config, setting),
            columns=setting._asdict(),
        )
        for setting in SETTINGS
        if config.grid_seeds
    ]
    return [*networks, *settings]


def arm_task(arm: str, seed: int, measure: Callable[[Path], Iterator[dict[str, Any]]]) -> Part:
    """Return the task of one network of an arm."""
    name = arm.replace(", ", "-").replace(" ", "-")
    return Part(f"{name}-{seed}", measure, columns={"arm": arm, "seed": seed})


def _network(config: Config, name: str, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    standard = name in STANDARD_ARMS
    arm, steps = (MINIMAL_ARMS | STANDARD_ARMS)[name], config.standard_steps if standard else config.steps
    network, loss = trained(config, arm, seed, config.types, config.depth, steps)
    near, far = (prefixes(config.types, config.depth, seed, length) for length in (TRAINED_LENGTH, FAR[1]))
    inside, outside = closing_accuracy(network, near), closing_accuracy(network, far, FAR[0])
    row = {
        "kind": "network",
        "loss": loss,
        "closings": int((near % 2 == 1).sum()),
        "inside": inside.likeliest,
        "inside_confident": inside.confident,
        "outside": outside.likeliest,
        "outside_confident": outside.confident,
        "uniform": closing_accuracy(with_uniform_attention(network), near).likeliest,
    }
    patterns = network.attention_weights(near)
    row |= {f"stack_{layer}": stack_likeness(each.detach(), near) for layer, each in enumerate(patterns, 1)}
    if not standard:
        chain = inequality_chain(network, (40, 128, 512), target="closing")
        row |= {
            "balance": balance_violation(network),
            "balance_released": balance_violation(network, "released"),
            "log_decay": log_weight_decay(network, TRAINED_LENGTH, 1.0),
            "violations": int(
                (chain.distance < chain.required).sum()
                + (chain.total > chain.total_bound).sum()
                + (chain.pair > chain.pair_bound).sum()
            ),
            "positive": int((chain.required > 0).sum()),
            "cases": len(chain.required),
            "slack": float((chain.pair_bound / chain.pair).log10().median()),
        }
    yield row
    yield from pattern_rows(network, NESTED)


def _setting(config: Config, setting: Setting, _: Path) -> Iterator[dict[str, Any]]:
    """All networks of a row of Table 2.6, and the variation between any two of them, layer by layer."""
    types, depth = setting.types, setting.depth
    config = replace(config, standard_learning_rate=config.grid_learning_rate)
    found: dict[int, list[Tensor]] = {}
    for place, seed in enumerate(config.grid_seeds):
        network, loss = trained(config, setting.arm, seed, types, depth, config.grid_steps)
        words = trained_words(types, depth, seed)
        rightly = sum(closing_accuracy(network, each).likeliest * each.numel() for each in words)
        inside = rightly / sum(each.numel() for each in words)
        yield {"kind": "setting", "seed": seed, "loss": loss, "inside": inside}
        if place < _DRAWN:
            for row in pattern_rows(network, NESTED):
                yield {**row, "seed": seed, "arm": str(setting)}
        patterns = network.attention_weights(sentences(types, depth, SENTENCE))
        own = [pattern.detach() for pattern in patterns]
        for other, theirs in found.items():
            for layer, apart in enumerate(map(variation, own, theirs), 1):
                numbers = {"variation": float(apart.mean()), "deviation": float(apart.std())}
                yield {"kind": "pair", "seed": seed, "other": other, "layer": layer, **numbers}
        found[seed] = own
