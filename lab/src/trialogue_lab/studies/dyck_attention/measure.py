"""Tasks of a run, which train networks and measure their accuracy, balance violation and attention."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

from trialogue_lab.analysis.attention_variation import stack_likeness, variation, with_uniform_attention
from trialogue_lab.analysis.closing_accuracy import closing_accuracy
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.dyck_attention import networks
from trialogue_lab.studies.dyck_attention.config import Config
from trialogue_lab.theory.balance import balance_violation, inequality_chain, log_weight_decay

SENTENCE = 18
"""Number of brackets in a sentence of Table 2.6. The start token makes 19 positions."""
_SHOWN_NETWORKS = 2
"""Number of networks per setting whose attention is stored for a figure."""


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, each of which trains networks to predict closing brackets.

    The first tasks train one network each, and measure its accuracy and its attention. Every further task trains
    several networks with the same hyperparameters (one row of Table 2.6 of the thesis) and different seeds. It measures
    how much their attention weights differ.

    Args:
        config: Settings of the run.
    """
    seeds_of = ((networks.MINIMAL_ARMS, config.seeds), (networks.STANDARD_ARMS, config.standard_seeds))
    network_tasks = [
        make_network_task(name, seed, partial(_measure_network, config, name, seed))
        for arms, seeds in seeds_of
        for seed in seeds
        for name in arms
    ]
    setting_tasks = [
        Part(
            f"table-k{setting.types}-d{setting.depth}-{setting.layers}-layers",
            partial(_measure_setting, config, setting),
            columns=setting._asdict(),
        )
        for setting in networks.SETTINGS
        if config.grid_seeds
    ]
    return [*network_tasks, *setting_tasks]


def make_network_task(arm: str, seed: int, measure: Callable[[Path], MeasuredRows]) -> Part:
    """Return a task that measures one network.

    The values of `arm` and `seed` are added to each measured row as columns.

    Args:
        arm: Name of the network's architecture and way of training, for example "words" (trained on complete strings).
        seed: Seed of the training.
        measure: Function from the folder of artifacts to the measured rows.
    """
    name = arm.replace(", ", "-").replace(" ", "-")
    return Part(f"{name}-{seed}", measure, columns={"arm": arm, "seed": seed})


def _measure_network(config: Config, name: str, seed: int, _: Path) -> MeasuredRows:
    is_standard = name in networks.STANDARD_ARMS
    arm = (networks.MINIMAL_ARMS | networks.STANDARD_ARMS)[name]
    steps = config.standard_steps if is_standard else config.steps
    network, loss = networks.train_network(config, arm, seed, config.types, config.depth, steps)
    inside, outside = networks.evaluate_accuracies(network, config.types, config.depth, seed)
    prefixes = networks.sample_prefixes(config.types, config.depth, seed)
    row = {
        "kind": "network",
        "loss": loss,
        "closings": int((prefixes % 2 == 1).sum()),
        "inside": inside.likeliest,
        "inside_confident": inside.confident,
        "outside": outside.likeliest,
        "outside_confident": outside.confident,
        "uniform": closing_accuracy(with_uniform_attention(network), prefixes).likeliest,
    }
    for layer, pattern in enumerate(network.attention_weights(prefixes), 1):
        row[f"stack_{layer}"] = stack_likeness(pattern.detach(), prefixes)
    if not is_standard:
        chain = inequality_chain(network, (40, 128, 512), target="closing")
        failed = (
            chain.distance < chain.required,
            chain.total > chain.total_bound,
            chain.pair > chain.pair_bound,
        )
        row |= {
            "balance": balance_violation(network),
            "balance_released": balance_violation(network, "released"),
            "log_decay": log_weight_decay(network, networks.TRAINED_LENGTH, 1.0),
            "violations": sum(int(case.sum()) for case in failed),
            "positive": int((chain.required > 0).sum()),
            "cases": len(chain.required),
            "slack": float((chain.pair_bound / chain.pair).log10().median()),
        }
    yield row
    yield from networks.measure_attention_patterns(network, networks.NESTED)


def _measure_setting(config: Config, setting: networks.GridSetting, _: Path) -> MeasuredRows:
    """Train networks with the same hyperparameters and different seeds, and compare their attention weights."""
    types, depth = setting.types, setting.depth
    config = replace(config, standard_learning_rate=config.grid_learning_rate)
    patterns_by_seed: dict[int, list[Tensor]] = {}
    for place, seed in enumerate(config.grid_seeds):
        network, loss = networks.train_network(config, setting.arm, seed, types, depth, config.grid_steps)
        words = networks.sample_words(types, depth, seed)
        correct = sum(closing_accuracy(network, batch).likeliest * batch.numel() for batch in words)
        inside = correct / sum(batch.numel() for batch in words)
        yield {"kind": "setting", "seed": seed, "loss": loss, "inside": inside}
        if place < _SHOWN_NETWORKS:
            for row in networks.measure_attention_patterns(network, networks.NESTED):
                yield {**row, "seed": seed, "arm": str(setting)}
        weights = network.attention_weights(networks.sample_sentences(types, depth, SENTENCE))
        patterns = [pattern.detach() for pattern in weights]
        for other, other_patterns in patterns_by_seed.items():
            for layer, distances in enumerate(map(variation, patterns, other_patterns), 1):
                numbers = {"variation": float(distances.mean()), "deviation": float(distances.std())}
                yield {"kind": "pair", "seed": seed, "other": other, "layer": layer, **numbers}
        patterns_by_seed[seed] = patterns
