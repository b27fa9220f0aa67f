"""The parts of a run: one network each, what it closes rightly, how balanced it is, and where it attends."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
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
        Part(
            f"{name.replace(', ', '-').replace(' ', '-')}-{seed}",
            partial(_network, config, name, seed),
            columns={"arm": name, "seed": seed},
        )
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
    row |= {f"stack_{layer + 1}": stack_likeness(each.detach(), near) for layer, each in enumerate(patterns)}
    if not standard:
        row |= {
            "balance": balance_violation(network),
            "balance_released": balance_violation(network, "released"),
            "log_decay": log_weight_decay(network, TRAINED_LENGTH, 1.0),
        }
        chain = inequality_chain(network, (40, 128, 512), target="closing")
        row |= {
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
    for layer, each in enumerate(network.attention_weights(torch.tensor([NESTED]))):
        yield _pattern(layer + 1, each[0])


def _setting(config: Config, setting: Setting, _: Path) -> Iterator[dict[str, Any]]:
    """All networks of a row of Table 2.6, and the variation between any two of them, layer by layer."""
    types, depth, _layers = setting
    config = replace(config, standard_learning_rate=config.grid_learning_rate)
    found: dict[int, list[Tensor]] = {}
    for place, seed in enumerate(config.grid_seeds):
        network, loss = trained(config, setting.arm, seed, types, depth, config.grid_steps)
        words = trained_words(types, depth, seed)
        rightly = sum(closing_accuracy(network, each).likeliest * each.numel() for each in words)
        yield {
            "kind": "setting",
            "seed": seed,
            "loss": loss,
            "inside": rightly / sum(each.numel() for each in words),
        }
        if place < _DRAWN:
            for layer, each in enumerate(network.attention_weights(torch.tensor([NESTED]))):
                yield {**_pattern(layer + 1, each[0]), "seed": seed, "arm": str(setting)}
        asked = sentences(types, depth, SENTENCE)
        own = [pattern.detach() for pattern in network.attention_weights(asked)]
        for other, theirs in found.items():
            for layer, (first, second) in enumerate(zip(own, theirs, strict=True)):
                apart = variation(first, second)
                yield {
                    "kind": "pair",
                    "seed": seed,
                    "other": other,
                    "layer": layer + 1,
                    "variation": float(apart.mean()),
                    "deviation": float(apart.std()),
                }
        found[seed] = own


def _pattern(layer: int, pattern: Tensor) -> dict[str, Any]:
    weights = [[round(weight, 4) for weight in line] for line in pattern.tolist()]
    return {"kind": "pattern", "layer": layer, "weights": json.dumps(weights)}
