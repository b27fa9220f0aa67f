"""Tasks of a run. Each task trains one network to copy brackets, and measures its accuracy and attention weights."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from trialogue.data import Dyck
from trialogue.training import train
from trialogue_lab.analysis.attention_variation import causal_baseline, variation, with_uniform_attention
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.models.dyck_transformer import DyckTransformer
from trialogue_lab.studies.dyck_attention.measure import make_network_task
from trialogue_lab.studies.dyck_attention.networks import STANDARD, measure_attention_patterns
from trialogue_lab.studies.dyck_copying.config import Config
from trialogue_lab.training.brackets import bracket_batches, bracket_training, copying_loss

TYPES, DEPTH, TEST_PREFIXES = 2, 4, 200
SHOWN_PREFIX = (0, 0, 1, 2, 2, 0, 1, 3, 3, 1, 2, 0, 1, 3, 0, 1)
"""Prefix for which the figure shows the attention weights."""

_SHAPE = replace(STANDARD, types=TYPES, depth=DEPTH)
_LAYER = (50, 50)
ARMS = {
    "4 layers": replace(_SHAPE, mlps=(_LAYER,) * 4),
    "1 layer": replace(_SHAPE, mlps=(_LAYER,)),
    "1 layer, no residual": replace(_SHAPE, mlps=(_LAYER,), residual=False),
}


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, each of which trains one network to copy bracket strings and measures it.

    The measurements are the accuracy of the copies and the attention weights.

    Args:
        config: Settings of the run.
    """
    return [
        make_network_task(name, seed, partial(_measure, config, name, seed))
        for seed in config.seeds
        for name in ARMS
    ]


def _measure(config: Config, name: str, seed: int, _: Path) -> MeasuredRows:
    network = DyckTransformer(ARMS[name], seed)
    training = bracket_training(config.steps, config.learning_rate, seed)
    batches = partial(
        bracket_batches, seed=seed, types=TYPES, depth=DEPTH, longest=config.length, strings="prefixes"
    )
    train(network, batches, training, loss=copying_loss, progress=False)
    tokens = Dyck(config.length, (0.5, 0.5), 0.5, DEPTH, complete=False).sample(TEST_PREFIXES, seed)
    yield {
        "kind": "network",
        "copied": _copy_accuracy(network, tokens),
        "uniform": _copy_accuracy(with_uniform_attention(network), tokens),
        "tokens": tokens.numel(),
    }
    for layer, pattern in enumerate(network.attention_weights(tokens), 1):
        yield {"kind": "layer", "layer": layer, **_summarize_attention(pattern.detach(), tokens)}
    yield from measure_attention_patterns(network, SHOWN_PREFIX)


@torch.no_grad()
def _copy_accuracy(network: DyckTransformer, tokens: Tensor) -> float:
    """Return the fraction of tokens that the network predicts correctly at their own position."""
    return float((network(tokens)[:, 1:].argmax(-1) == tokens).double().mean())


def _summarize_attention(pattern: Tensor, tokens: Tensor) -> dict[str, float]:
    """Return mean attention weights, and the distance of the attention weights (n, T, T) from uniform ones."""
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
