"""The parts of a run: networks that copy, what they copy with uniform attention, and where each layer attends."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.data import Dyck
from trialogue.training import train
from trialogue_lab.analysis.attention_variation import causal_baseline, variation, with_uniform_attention
from trialogue_lab.ledger import Part
from trialogue_lab.models.dyck_transformer import DyckTransformer, DyckTransformerConfig
from trialogue_lab.studies.dyck_attention.measure import arm_task
from trialogue_lab.studies.dyck_attention.networks import pattern_rows
from trialogue_lab.studies.dyck_copying.config import Config
from trialogue_lab.training.brackets import bracket_batches, bracket_training, copying_loss

TYPES, DEPTH, ASKED = 2, 4, 200
SHOWN = (0, 0, 1, 2, 2, 0, 1, 3, 3, 1, 2, 0, 1, 3, 0, 1)
"""The prefix whose attention is drawn"""

_LAYER = (50, 50)
_STANDARD = DyckTransformerConfig(
    types=TYPES, depth=DEPTH, embedding="tokens", residual=True, norm="sum", norm_floor=1e-5
)
ARMS = {
    "4 layers": replace(_STANDARD, mlps=(_LAYER,) * 4),
    "1 layer": replace(_STANDARD, mlps=(_LAYER,)),
    "1 layer, no residual": replace(_STANDARD, mlps=(_LAYER,), residual=False),
}


def parts(config: Config) -> list[Part]:
    """One part for every network."""
    return [
        arm_task(name, seed, partial(_network, config, name, seed)) for seed in config.seeds for name in ARMS
    ]


def _network(config: Config, name: str, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    network = DyckTransformer(ARMS[name], seed)
    training = bracket_training(config.steps, config.learning_rate, seed)
    batches = partial(
        bracket_batches, seed=seed, types=TYPES, depth=DEPTH, longest=config.length, strings="prefixes"
    )
    train(network, batches, training, loss=copying_loss, progress=False)
    tokens = Dyck(config.length, (0.5, 0.5), 0.5, DEPTH, complete=False).sample(ASKED, seed)
    yield {
        "kind": "network",
        "copied": _copied(network, tokens),
        "uniform": _copied(with_uniform_attention(network), tokens),
        "tokens": tokens.numel(),
    }
    for layer, pattern in enumerate(network.attention_weights(tokens), 1):
        yield {"kind": "layer", "layer": layer, **_read(pattern.detach(), tokens)}
    yield from pattern_rows(network, SHOWN)


@torch.no_grad()
def _copied(network: DyckTransformer, tokens: Tensor) -> float:
    """The share of tokens at which the likeliest answer is the token itself."""
    return float((network(tokens)[:, 1:].argmax(-1) == tokens).double().mean())


def _read(pattern: Tensor, tokens: Tensor) -> dict[str, float]:
    """What a reader might see in a layer: how far it is from uniform, and the share of weight on what."""
    length = pattern.shape[-1]
    uniform = torch.ones(length, length).tril()
    uniform = (uniform / uniform.sum(1, keepdim=True)).expand_as(pattern)
    closing = torch.nn.functional.pad(tokens % 2, (1, 0)).to(pattern.dtype)[:, None]
    return {
        "from_uniform": float(variation(pattern, uniform).mean()) / causal_baseline(length),
        "on_itself": float(pattern.diagonal(dim1=-2, dim2=-1)[:, 1:].mean()),
        "on_closing": float((pattern * closing).sum(-1)[:, 1:].mean()),
        "on_closing_uniform": float((uniform * closing).sum(-1)[:, 1:].mean()),
    }
