"""Networks that are trained to predict the next token from the previous S tokens of a text."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.training.config import TrainingConfig
from trialogue.training.recipes import Recipe, load_or_train
from trialogue_lab.studies.memorization_text.config import Config

_HEADS = 2
_WARM_UP = 0.1
_BATCH = 4096


def compute_next_token_logits(network: AttentionOnly | Transformer, contexts: Tensor) -> Tensor:
    """Compute the logits of the token after each context.

    Args:
        network: The network.
        contexts: Token ids (n, S).

    Returns:
        Logits (n, N), where N is the number of tokens of the vocabulary.
    """
    logits: Tensor
    if isinstance(network, AttentionOnly):
        logits = network(contexts)
        return logits
    bos = contexts.new_full((len(contexts), 1), network.bos)
    logits = network(torch.cat((bos, contexts), 1))[:, -1, : network.data_tokens]
    return logits


def compute_next_token_loss(
    network: AttentionOnly | Transformer, contexts: Tensor, following: Tensor
) -> Tensor:
    """Return the mean cross-entropy of the next token, in nats.

    Args:
        network: The network.
        contexts: Token ids (n, S).
        following: The token ids (n,) that follow the contexts.
    """
    return F.cross_entropy(compute_next_token_logits(network, contexts), following)


def sample_windows(
    rows: Tensor, context: int, batch_size: int, seed: int, step: int
) -> tuple[Tensor, Tensor]:
    """Sample contexts and the tokens that follow them, uniformly over the positions of a text.

    Args:
        rows: Text (n, L), int64.
        context: Number of tokens S per context.
        batch_size: Number of contexts.
        seed: Seed of the random stream.
        step: Training step. Each step has its own random numbers.

    Returns:
        Contexts (batch_size, S) and following tokens (batch_size,).
    """
    random = generator(seed, "places", step)
    row = torch.randint(0, len(rows), (batch_size, 1), generator=random)
    first = torch.randint(0, rows.shape[1] - context, (batch_size, 1), generator=random)
    windows = rows[row, first + torch.arange(context + 1)]
    return windows[:, :context], windows[:, context]


def train_or_load_network(
    config: Config,
    shape: AttentionOnlyConfig | TransformerConfig,
    rows: Tensor,
    seed: int,
    folder: Path,
) -> AttentionOnly | Transformer:
    """Train a network to predict the next token of a text, or load it.

    Args:
        config: Settings of the training.
        shape: Shape of the network.
        rows: Text (n, L), int64.
        seed: Seed of the initial weights and batches.
        folder: Folder of the trained networks.
    """
    attention = isinstance(shape, AttentionOnlyConfig)
    context = shape.context if isinstance(shape, AttentionOnlyConfig) else shape.max_length
    training = TrainingConfig(
        steps=config.steps,
        batch_size=config.batch_size,
        learning_rate=config.attention_rate if attention else config.transformer_rate,
        weight_decay=0.0,
        warmup_steps=max(1, int(_WARM_UP * config.steps)),
        seed=seed,
    )
    kind: Any = AttentionOnly if attention else Transformer
    batches = partial(sample_windows, rows.clone(), context, config.batch_size, seed)
    network: AttentionOnly | Transformer
    network = load_or_train(Recipe(kind, shape, batches, training, compute_next_token_loss), folder).network
    return network


@torch.no_grad()
def compute_next_token_log_probs(network: AttentionOnly | Transformer, contexts: Tensor) -> Tensor:
    """Compute the log-probabilities of the token after each context.

    Args:
        network: The network.
        contexts: Token ids (n, S).

    Returns:
        Log-probabilities (n, N) float64, where N is the number of tokens of the vocabulary.
    """
    parts = [compute_next_token_logits(network, part).double() for part in contexts.split(_BATCH)]
    return torch.cat(parts).log_softmax(-1)


def count_parameters(network: AttentionOnly | Transformer) -> int:
    """Return the number of parameters of a network.

    Args:
        network: The network.
    """
    return sum(parameter.numel() for parameter in network.parameters())


def match_transformer_size(vocab_size: int, context: int, layers: int, size: int) -> TransformerConfig:
    """Return the shape of a causal transformer that has about `size` parameters.

    The transformer has the largest width for which an MLP of four times the width fits. The MLP is then widened to use
    the remaining parameters.

    Args:
        vocab_size: Number of tokens of the vocabulary.
        context: Maximum number of tokens of a sequence.
        layers: Number of layers.
        size: Number of parameters.
    """

    def shape(width: int, more: int = 0) -> TransformerConfig:
        return TransformerConfig(
            vocab_size=vocab_size,
            layers=layers,
            heads=_HEADS,
            width=width,
            mlp_width=4 * width + more,
            max_length=context,
        )

    def parameters(config: TransformerConfig) -> int:
        with torch.device("meta"):
            return count_parameters(Transformer(config))

    width = _HEADS
    while parameters(shape(width + _HEADS)) <= size:
        width += _HEADS
    base = parameters(shape(width))
    per_unit = parameters(shape(width, 1)) - base
    return shape(width, max(0, round((size - base) / per_unit)))
