"""Networks that learn the next token of a text from the S before it, and the transformer that is as large as one."""

from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.models.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.models.transformer import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.training.config import TrainingConfig
from trialogue.training.recipes import Recipe, trained
from trialogue_lab.studies.memorization_text.config import Config

_HEADS = 2
_WARM_UP = 0.1
_AT_ONCE = 4096


def following_logits(network: AttentionOnly | Transformer, contexts: Tensor) -> Tensor:
    """Logits (n, N) of the token after `contexts` (n, S)."""
    if isinstance(network, AttentionOnly):
        logits: Tensor = network(contexts)
        return logits
    first = contexts.new_full((len(contexts), 1), network.bos)
    answers: Tensor = network(torch.cat((first, contexts), 1))[:, -1, : network.data_tokens]
    return answers


def following_loss(network: AttentionOnly | Transformer, contexts: Tensor, following: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, of the tokens `following` (n,) after `contexts` (n, S)."""
    return F.cross_entropy(following_logits(network, contexts), following)


def drawn_places(rows: Tensor, context: int, batch_size: int, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Contexts (batch_size, S) at places of `rows` (n, L), all equally likely, and the tokens after them."""
    random = generator(seed, "places", step)
    row = torch.randint(0, len(rows), (batch_size, 1), generator=random)
    first = torch.randint(0, rows.shape[1] - context, (batch_size, 1), generator=random)
    windows = rows[row, first + torch.arange(context + 1)]
    return windows[:, :context], windows[:, context]


def trained_network(
    config: Config,
    shape: AttentionOnlyConfig | TransformerConfig,
    rows: Tensor,
    context: int,
    seed: int,
    folder: Path,
) -> AttentionOnly | Transformer:
    """The network of `shape` that has learned what follows `context` tokens in `rows`."""
    places = partial(drawn_places, rows.clone(), context, config.batch_size, seed)
    attention = isinstance(shape, AttentionOnlyConfig)
    training = TrainingConfig(
        steps=config.steps,
        batch_size=config.batch_size,
        learning_rate=config.attention_rate if attention else config.transformer_rate,
        weight_decay=0.0,
        warmup_steps=max(1, int(_WARM_UP * config.steps)),
        seed=seed,
    )
    if isinstance(shape, AttentionOnlyConfig):
        return trained(Recipe(AttentionOnly, shape, places, training, following_loss), folder).network
    return trained(Recipe(Transformer, shape, places, training, following_loss), folder).network


def answers_of(network: AttentionOnly | Transformer, contexts: Tensor) -> Tensor:
    """Log-probabilities (n, N) float64 of the token after `contexts` (n, S), without gradients."""
    with torch.no_grad():
        parts = [following_logits(network, part).double() for part in contexts.split(_AT_ONCE)]
    return torch.cat(parts).log_softmax(-1)


def size_of(network: AttentionOnly | Transformer) -> int:
    """How many numbers the network has."""
    return sum(parameter.numel() for parameter in network.parameters())


def equal_transformer(vocab_size: int, context: int, layers: int, size: int) -> TransformerConfig:
    """The causal transformer of `context` tokens with about `size` parameters: the widest whose MLP has four widths.

    What is then left goes into a wider MLP.
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
            return size_of(Transformer(config))

    width = _HEADS
    while parameters(shape(width + _HEADS)) <= size:
        width += _HEADS
    bare = parameters(shape(width))
    each = parameters(shape(width, 1)) - bare
    return shape(width, max(0, round((size - bare) / each)))
