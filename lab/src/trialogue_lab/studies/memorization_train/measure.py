"""Tasks of a run. Each one trains the networks of one experiment for one seed."""

from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.randomness import derive_seed, generator
from trialogue.training import train
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.memorization_train.config import CONTEXT, Config
from trialogue_lab.theory.memorization import accuracy_bound, capacity, previous_capacity

Network = tuple[str, AttentionOnlyConfig]
"""Form (one of the names below) and shape of a network."""
PER_HEAD, SHARED, MLP, DEEP = "per-head", "shared", "MLP", "deep"
"""Forms of networks: per-head values (equation 1), one map for all heads, one head and an MLP, or several layers."""

_COLUMNS = ("vocab_size", "width", "head_width", "heads", "layers", "mlp_width", "parameters")


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each experiment and seed.

    Each task trains all networks of its experiment to predict one random token after every pair of tokens, and measures
    their accuracy.

    Args:
        config: Settings of the run.
    """
    return [
        Part(
            f"{name}-{seed}",
            partial(_measure_experiment, config, seed, shapes),
            columns={"experiment": name, "seed": seed},
        )
        for seed in config.seeds
        for name, shapes in list_experiments(config).items()
    ]


def list_experiments(config: Config) -> dict[str, list[Network]]:
    """Return the networks that are trained in every experiment.

    Args:
        config: Settings of the run.

    Returns:
        A list of networks for each name of an experiment. A network is a pair of form and shape. The form is "per-head"
        (every head has its own value map), "shared" (one value map for all heads), "MLP" (one head and an MLP) or
        "deep" (several layers).
    """

    def net(form: str, size: int, width: int, head_width: int, heads: int, **fields: int) -> Network:
        shape = AttentionOnlyConfig(
            vocab_size=size,
            context=CONTEXT,
            width=width,
            heads=heads,
            head_width=head_width,
            shared=form == SHARED,
            **fields,
        )
        return form, shape

    per_head, shared = partial(net, PER_HEAD), partial(net, SHARED)
    size, fixed, count, layers = config.vocab_size, config.fixed_width, config.fixed_heads, config.deep_layers
    return {
        "heads": [per_head(size, each, each, heads) for each in config.widths for heads in config.heads],
        "head-width": [
            *(per_head(size, fixed, each, count) for each in (*config.head_widths, fixed)),
            *(shared(size, fixed, each, count) for each in config.head_widths),
        ],
        "width": [
            *(per_head(size, each, fixed, count) for each in config.embedding_widths if each > fixed),
            *(shared(size, each, fixed, count) for each in config.embedding_widths),
        ],
        "mlp": [
            *(per_head(config.mlp_vocab_size, fixed, fixed, heads) for heads in config.mlp_heads),
            *(
                net(MLP, config.mlp_vocab_size, fixed, fixed, 1, mlp_width=2 * fixed * (heads - 1))
                for heads in config.mlp_heads
                if heads > 1
            ),
        ],
        "two-dimensions": [per_head(config.small_vocab_size, 2, 2, heads) for heads in config.small_heads],
        "large": [
            per_head(config.large_vocab_size, each, each, heads)
            for each in config.large_widths
            for heads in config.large_heads
        ],
        "deep": [
            net(form, config.deep_vocab_size, config.deep_width, config.deep_width, many, layers=deep)
            for heads in config.deep_heads
            for form, many, deep in ((DEEP, heads, layers), (PER_HEAD, heads * layers, 1))
        ],
    }


def compute_association_loss(model: AttentionOnly, tokens: Tensor) -> Tensor:
    """Return the mean cross-entropy of the predicted tokens after all contexts, in nats.

    Args:
        model: The network, with N tokens and contexts of S tokens.
        tokens: The correct token after every context (N^S,), int64.

    Returns:
        The scalar loss.
    """
    return functional.cross_entropy(model.whole_logits(), tokens)


def sample_tokens(seed: int, vocab_size: int) -> Tensor:
    """Sample one uniformly distributed token for every context of two tokens.

    Args:
        seed: Seed of the tokens.
        vocab_size: Number of tokens N.

    Returns:
        Tokens (N^2,), int64.
    """
    random = generator(seed, "memorization-train", "tokens", vocab_size)
    return torch.randint(0, vocab_size, (vocab_size**CONTEXT,), generator=random)


def make_initial_network(config: Config, shape: AttentionOnlyConfig, seed: int) -> AttentionOnly:
    """Return an untrained network with scaled embeddings.

    Args:
        config: Settings of the run. Token and position embeddings are multiplied by `config.initial_scale`.
        shape: Shape of the network.
        seed: Seed of the initial weights.
    """
    network = AttentionOnly(shape, derive_seed(seed, "memorization-train", "weights"))
    with torch.no_grad():
        network.embedding.mul_(config.initial_scale)
        network.positions.mul_(config.initial_scale)
    return network


def _measure_experiment(config: Config, seed: int, shapes: list[Network], _: Path) -> MeasuredRows:
    for form, shape in shapes:
        network, tokens = make_initial_network(config, shape, seed), sample_tokens(seed, shape.vocab_size)
        contexts = len(tokens)
        # Every step uses all contexts.
        batches = partial(lambda every, _: (every,), tokens)
        train(network, batches, config.training(contexts), loss=compute_association_loss, progress=False)
        with torch.no_grad():
            logits = network.whole_logits()
        stored = capacity(shape.width, shape.head_width, shape.heads)
        previous = previous_capacity(shape.head_width, shape.heads)
        yield {
            "kind": "training",
            "form": form,
            "contexts": contexts,
            **{name: getattr(shape, name) for name in _COLUMNS},
            "accuracy": float((logits.argmax(1) == tokens).double().mean()),
            "loss": float(functional.cross_entropy(logits, tokens)),
            "bound": accuracy_bound(stored, contexts, shape.vocab_size),
            "previous": accuracy_bound(previous, contexts, shape.vocab_size),
        }
