"""The parts of a run: one network each, what it closes rightly, how balanced it is, and where it attends."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.analysis.attention_variation import stack_likeness, with_uniform_attention
from trialogue.analysis.closing_accuracy import closing_accuracy
from trialogue.data import Dyck
from trialogue.ledger import Part
from trialogue.models.dyck_transformer import DyckTransformer, DyckTransformerConfig
from trialogue.studies.dyck_attention.config import Config
from trialogue.theory.balance import balance_violation, inequality_chain
from trialogue.training import TrainingConfig, train
from trialogue.training.brackets import Contrast, Strings, bracket_batches, closing_loss, contrastive_loss

TRAINED_LENGTH = 28
FAR = (400, 500)
"""Lengths of prefixes, of 16 times the trained length and more"""
_EVALUATED = 40
NESTED = (0,) * 4 + (1,) * 4 + (2,) * 4 + (3,) * 4
"""The prefix whose attention is compared: four nested pairs of one type, then four of another"""

_MINIMAL = DyckTransformerConfig(norm_floor=1e-5)
_STANDARD = DyckTransformerConfig(
    embedding="tokens", residual=True, norm="sum", norm_floor=1e-5, mlps=((50, 50), (50, 50))
)

MINIMAL_ARMS: dict[str, tuple[DyckTransformerConfig, Strings, Contrast]] = {
    "words": (_MINIMAL, "words", "none"),
    "words, contrast": (_MINIMAL, "words", "nested"),
    "words, sums": (replace(_MINIMAL, embedding="sums"), "words", "none"),
    "words, angles": (replace(_MINIMAL, embedding="angles"), "words", "none"),
    "prefixes": (_MINIMAL, "prefixes", "none"),
    "prefixes, contrast": (_MINIMAL, "prefixes", "nested"),
}
STANDARD_ARMS: dict[str, tuple[DyckTransformerConfig, Strings, Contrast]] = {
    "standard": (_STANDARD, "words", "none"),
    "standard, linear": (replace(_STANDARD, positions="linear"), "words", "none"),
    "standard, uniform": (replace(_STANDARD, uniform=True), "words", "none"),
}
"""The shape of a network, the strings it is trained on, and the regulariser"""


def parts(config: Config) -> list[Part]:
    """One part for every network."""
    return [
        Part(
            f"{name.replace(', ', '-')}-{seed}",
            partial(_network, config, name, seed),
            columns={"arm": name, "seed": seed},
        )
        for arms, seeds in ((MINIMAL_ARMS, config.seeds), (STANDARD_ARMS, config.standard_seeds))
        for seed in seeds
        for name in arms
    ]


def _network(config: Config, name: str, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    shape, strings, contrast = (MINIMAL_ARMS | STANDARD_ARMS)[name]
    network = DyckTransformer(replace(shape, types=config.types, depth=config.depth), seed)
    standard = name in STANDARD_ARMS
    result = train(
        network,
        partial(
            bracket_batches,
            seed=seed,
            types=config.types,
            depth=config.depth,
            longest=TRAINED_LENGTH,
            strings=strings,
            contrast=contrast,
        ),
        TrainingConfig(
            steps=config.standard_steps if standard else config.steps,
            batch_size=100,
            learning_rate=config.standard_learning_rate if standard else config.learning_rate,
            weight_decay=0.0,
            beta_2=0.999,
            warmup_steps=20,
            seed=seed,
        ),
        loss=closing_loss if contrast == "none" else partial(contrastive_loss, weight=config.contrast_weight),
        progress=False,
    )
    near, far = (_prefixes(config, seed, length) for length in (TRAINED_LENGTH, FAR[1]))
    inside, outside = closing_accuracy(network, near), closing_accuracy(network, far, FAR[0])
    row = {
        "kind": "network",
        "loss": float(result.losses[-20:].mean()),
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
    for layer, pattern in enumerate(network.attention_weights(torch.tensor([NESTED]))):
        weights = [[round(weight, 4) for weight in line] for line in pattern[0].tolist()]
        yield {"kind": "pattern", "layer": layer + 1, "weights": json.dumps(weights)}


def _prefixes(config: Config, seed: int, length: int) -> Tensor:
    law = (1 / config.types,) * config.types
    return Dyck(length, law, 0.5, config.depth, complete=False).sample(_EVALUATED, seed)
