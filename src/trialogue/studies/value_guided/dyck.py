"""Models of Dyck strings, completed under exact, noisy and trained values."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trialogue.inference import (
    Ancestral,
    Backtracking,
    SequentialMonteCarlo,
    TableValues,
    generate,
)
from trialogue.inference.laws import PrefixTree, prefix_tree, total_variation
from trialogue.inference.verifiers.probe import ProbeVerifier
from trialogue.inference.walks.walk import Walk
from trialogue.models.probe import hidden_states
from trialogue.models.transformer import Transformer
from trialogue.oracles import Verifier
from trialogue.randomness import numpy_generator, seed_of
from trialogue.studies.value_guided.config import Config
from trialogue.theory.value_guided import action_level_law, exact_values, first_leaf
from trialogue.training.probes import ProbeConfig, train_probe
from trialogue.training.recipes import Recipe, trained

Prefix = tuple[int, ...]
Law = Mapping[Prefix, float]
EXACT, NOISY, TRAINED = "exact", "noisy", "trained"
NOISE = 1.0
"""Noisy values are up to a factor of 2 above or below the exact ones."""
PARTICLES = 8


def trained_model(config: Config, seed: int, artifacts: Path) -> Transformer:
    """The trained model, from `artifacts` if it is there."""
    recipe = Recipe(Transformer, config.model(), partial(_strings, config, seed), config.training(seed))
    return trained(recipe, artifacts).network


def _strings(config: Config, seed: int, step: int) -> Tensor:
    return config.law().sample(32, seed_of(seed, "batch", step))


def prompts_of(config: Config, number: int, seed: int, role: str) -> tuple[Tensor, Tensor]:
    """Prompts of another law than the model was trained on: tokens, lengths."""
    lengths = (config.length - config.remaining[1], config.length - config.remaining[0])
    return config.other_law().sample_prompts(number, lengths, seed_of(seed, "prompts", role))


def trained_values(config: Config, model: Transformer, seed: int) -> ProbeVerifier:
    """A probe on the model's hidden states, trained to tell which prefixes a completion made right."""
    law = config.law()
    prompts = prompts_of(config, config.rollouts, seed, "rollouts")
    drawn = generate(model, prompts, seed=seed_of(seed, "rollouts"))
    right = law.is_member(drawn.tokens, drawn.lengths, law.vocab_size)
    draw = numpy_generator(seed, "cuts")
    share = torch.from_numpy(draw.random(len(right)))
    # A place of each completion, its last token left out: complete sequences have outcomes.
    cuts = drawn.prompt_lengths + (share * (drawn.lengths - drawn.prompt_lengths)).long()
    states = hidden_states(model, drawn.tokens, cuts)[:, 0]
    return ProbeVerifier(train_probe(states, right.long(), ProbeConfig(seed=seed_of(seed, "values"))).probe)


def measure_dyck(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Laws of value-guided rules, exactly, and those of other walks as they run, means over prompts."""
    model = trained_model(config, seed, artifacts)
    probe = trained_values(config, model, seed)
    tokens, lengths = prompts_of(config, config.prompts, seed, "measured")
    rows: list[dict[str, Any]] = []
    for place, (row, length) in enumerate(zip(tokens.tolist(), lengths.tolist(), strict=True)):
        rows += measure_prompt(config, model, probe, tuple(row[:length]), seed_of(seed, "prompt", place))
    for name in dict.fromkeys((row["rule"], row["values"]) for row in rows):
        of_rule = [row for row in rows if (row["rule"], row["values"]) == name]
        yield {
            "kind": "dyck",
            "rule": name[0],
            "values": name[1],
            **{
                column: math.fsum(row[column] for row in of_rule) / len(of_rule)
                for column in of_rule[0]
                if column not in ("rule", "values")
            },
        }


def measure_prompt(
    config: Config, model: Transformer, probe: Verifier, prompt: Prefix, seed: int
) -> Iterator[dict[str, Any]]:
    """One row per rule and values."""
    law, horizon = config.law(), config.length - len(prompt)
    tree = prefix_tree(model, prompt=prompt, max_new_tokens=horizon)
    exact = exact_values(model, law, prompt=prompt, max_new_tokens=horizon)
    leaves = [tree.prefixes[leaf] for leaf in np.flatnonzero(tree.leaf).tolist()]
    log_probs = dict(zip(tree.prefixes, tree.log_probs.tolist(), strict=True))
    weights = {x: math.exp(log_probs[x]) for x in leaves if exact(x) > 0}
    accepted = math.fsum(weights.values())
    target = {x: weight / accepted for x, weight in weights.items()}
    values = {
        EXACT: exact,
        NOISY: _altered(tree, exact, seed),
        TRAINED: _with_outcomes(tree, tree.values(probe), exact),
    }
    for name, guide in values.items():
        found = first_leaf(model, guide, prompt=prompt, max_new_tokens=horizon)
        yield _row("first leaf", name, found.law, target, found.moves, found.nodes)
        down = action_level_law(model, guide, prompt=prompt, max_new_tokens=horizon)
        yield _row("action level", name, down, target, horizon, horizon)
    walks: dict[tuple[str, str], tuple[Walk[Any], Verifier | None]] = {
        ("no rule", ""): (Ancestral(), None),
        ("backtracking", ""): (Backtracking(4, 4), law),
        **{
            ("sequential Monte Carlo", name): (SequentialMonteCarlo(PARTICLES, proposal="mask"), guide)
            for name, guide in values.items()
        },
    }
    for (rule, name), (walk, verifier) in walks.items():
        drawn = generate(
            model,
            [prompt],
            walk=walk,
            verifier=verifier,
            max_new_tokens=horizon,
            num_samples=config.outputs,
            seed=seed_of(seed, rule, name),
        )
        counts: dict[Prefix, float] = {}
        for output in drawn.sequences():
            counts[output] = counts.get(output, 0.0) + 1 / config.outputs
        yield _row(rule, name, counts, target, float(drawn.queries.double().mean()))
    rejected = _expected_length(tree) / accepted
    draw = numpy_generator(seed, "counts").multinomial(config.outputs, list(target.values())) / config.outputs
    yield _row("rejection", "", target, target, rejected)
    counts = dict(zip(target, draw.tolist(), strict=True))
    yield _row("as many draws of the restricted law", "", counts, target, rejected)


def _expected_length(tree: PrefixTree) -> float:
    """Tokens of a completion that nothing rules, on average."""
    inner = np.exp(tree.log_probs[~tree.leaf])
    return math.fsum(inner)


def _row(
    rule: str, values: str, law: Law, target: Law, queries: float, nodes: float | None = None
) -> dict[str, Any]:
    row = {
        "rule": rule,
        "values": values,
        "variation": total_variation(law, target),
        "accuracy": math.fsum(p for x, p in law.items() if x in target),
        "queries": queries,
    }
    return row if nodes is None else {**row, "nodes": nodes}


def _altered(tree: PrefixTree, exact: TableValues, seed: int) -> TableValues:
    """Exact values up to a factor inside the tree."""
    powers = numpy_generator(seed, "noise").uniform(-1, 1, len(tree.prefixes))
    return _with_outcomes(tree, np.array([exact(x) for x in tree.prefixes]) * (1 + NOISE) ** powers, exact)


def _with_outcomes(
    tree: PrefixTree, values: "np.ndarray[Any, np.dtype[np.float64]]", exact: TableValues
) -> TableValues:
    """`values` (n,) inside the tree, and the exact ones where a sequence is complete."""
    return TableValues(
        {
            prefix: exact(prefix) if leaf else value
            for prefix, leaf, value in zip(tree.prefixes, tree.leaf.tolist(), values.tolist(), strict=True)
        }
    )
