"""Scene 1 of the gallery: four samplers on a small language model, with a required last word."""

import itertools
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from trialogue.data import Table
from trialogue.oracles import Verifier
from trialogue.samplers import (
    Backtracking,
    MaskedDecoding,
    SequentialMonteCarlo,
    ValueGuided,
    generate,
)
from trialogue.samplers.exact import (
    exact_distribution,
    exact_values,
    prefix_tree,
    target_distribution,
    total_variation,
)
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.output.samples import Samples
from trialogue.verifiers.functions.function import FunctionVerifier

Prefix = tuple[int, ...]

WORDS = ("Fish", "Dogs", "swim", "bark", "quietly", "loudly")
PROBABILITIES = {
    "": {"Fish": 0.6, "Dogs": 0.4},
    "Fish": {"swim": 0.95, "bark": 0.05},
    "Dogs": {"swim": 0.3, "bark": 0.7},
    "Fish swim": {"quietly": 0.98, "loudly": 0.02},
    "Fish bark": {"quietly": 0.5, "loudly": 0.5},
    "Dogs swim": {"quietly": 0.7, "loudly": 0.3},
    "Dogs bark": {"quietly": 0.2, "loudly": 0.8},
}
"""Probabilities of the next word, by prefix. Sentences have three words."""
LAST = "loudly"
"""The last word that the constraint requires."""
TEMPTING = "Fish swim loudly"
"""The sentence that masked decoding writes too often."""
QUERIES = 2400
"""Number of model calls of each sampler."""


class Player(NamedTuple):
    """A sampler of the scene, with its name and a description in plain words.

    Attributes:
        name: Name on the page.
        description: Explanation of the sampler in plain words.
        sampler: The sampler.
        has_values: Whether the sampler receives the exact probability of a valid ending for each prefix.
    """

    name: str
    description: str
    sampler: Sampler[Any]
    has_values: bool = False


PLAYERS = (
    Player(
        "Masking",
        "picks each next word only among the words that the rule still allows, and never goes back",
        MaskedDecoding(),
    ),
    Player(
        "Backtracking",
        "writes freely; if the sentence breaks the rule, it erases the last two words and tries again, at most four "
        "times",
        Backtracking(quota=4, stride=2, argmax_redo=False),
    ),
    Player(
        "Four at a time",
        "writes four drafts in parallel; drafts that are unlikely to end well are replaced by copies of the others "
        "(sequential Monte Carlo)",
        SequentialMonteCarlo(particles=4, proposal="mask"),
    ),
    Player(
        "Value-guided",
        "is given the probability of a good ending after every word (the size of its dots), and moves down and up the "
        "tree by it",
        ValueGuided(lazy=False),
        has_values=True,
    ),
)


def make_oracle() -> Table:
    """Return the language model of the scene, whose sentences have three words."""
    rows = {_encode_sentence(prefix): row for prefix, row in PROBABILITIES.items()}
    return Table(lambda prefix: [rows[prefix].get(word, 0.0) for word in WORDS], len(WORDS), max_length=3)


def make_verifier() -> Verifier:
    """Return the constraint of the scene: a sentence must end with the word `LAST`.

    It is checked for complete sentences only, so that every prefix is accepted.
    """
    return FunctionVerifier(lambda prefix: WORDS[prefix[-1]] == LAST, whole=True)


def make_scene(seed: int = 0) -> dict[str, Any]:
    """Run every sampler on the language model, and return all data of the scene as JSON values.

    Args:
        seed: Seed of the samples (default: 0).

    Returns:
        Dictionary with the prefix tree of the language model, the target distribution, and one entry in "walks" per
        sampler. This entry has the exact output probabilities and sampled runs, as returned by `record_runs`. The runs
        of a sampler take at most `QUERIES` model calls. Nodes of the tree are numbered level by level from the root.
    """
    model, constraint = make_oracle(), make_verifier()
    tree = prefix_tree(model)
    target, values = target_distribution(model, constraint), exact_values(model, constraint)
    walks = []
    for player in PLAYERS:
        given = values if player.has_values else constraint
        exact = exact_distribution(player.sampler, model, given)
        samples = generate(
            model, sampler=player.sampler, verifier=given, num_samples=QUERIES // 3, seed=seed, trace=True
        )
        runs = record_runs(samples, player.sampler.rows_per_sample, tree.prefixes)
        calls = itertools.accumulate(sum(len(step[0]) for step in run["steps"]) for run in runs)
        walks.append(
            {
                "name": player.name,
                "description": player.description,
                "code": repr(player.sampler),
                "probabilities": [exact.probabilities.get(prefix, 0.0) for prefix in tree.prefixes],
                "queries": exact.expected_calls,
                # Without rounding, equal distributions would have a distance above 0.
                "distance": round(total_variation(exact.probabilities, target), 12),
                "values": [values.table[prefix] for prefix in tree.prefixes] if player.has_values else None,
                "runs": [run for run, total in zip(runs, calls, strict=True) if total <= QUERIES],
            }
        )
    return {
        "words": [WORDS[prefix[-1]] if prefix else "" for prefix in tree.prefixes],
        "parents": tree.parent.tolist(),
        "reached": np.exp(tree.log_probs).tolist(),
        "tempting": tree.prefixes.index(_encode_sentence(TEMPTING)),
        "target": [target.get(prefix, 0.0) for prefix in tree.prefixes],
        "walks": walks,
    }


def record_runs(samples: Samples, members: int, prefixes: Sequence[Prefix]) -> list[dict[str, Any]]:
    """Convert the recorded steps of a sampler to nodes of the prefix tree.

    Steps without model calls, which only select the output, are omitted.

    Args:
        samples: Samples with their recorded steps.
        members: Number of sequences that the sampler extends in parallel for one sample.
        prefixes: Prefixes of the tree, in the order of the node numbers.

    Returns:
        One dictionary per sample. "output" is the node of the output, and "steps" lists the nodes visited in
        each step. With several parallel sequences, each step also lists which earlier sequence each one
        continues.
    """
    trace, places = samples.trace, {prefix: place for place, prefix in enumerate(prefixes)}
    assert trace is not None
    columns = (trace.sample, trace.step, trace.member, trace.source, trace.kept, trace.token)
    moves = sorted(zip(*(column.tolist() for column in columns), strict=True))
    runs = []
    for sample, of_sample in itertools.groupby(moves, itemgetter(0)):
        at: list[Prefix] = [()] * members
        steps = []
        for _, step in itertools.groupby(of_sample, itemgetter(1)):
            before, sources, calls_model = list(at), list(range(members)), False
            for _, _, member, source, kept, token in step:
                sources[member] = source
                at[member] = before[source][:kept] + ((token,) if token >= 0 else ())
                calls_model |= token >= 0 or kept < len(before[source])
            if calls_model:
                nodes = [places[prefix] for prefix in at]
                steps.append([nodes, sources] if members > 1 else [nodes])
        runs.append({"steps": steps, "output": places[samples[sample].tokens]})
    return runs


def _encode_sentence(sentence: str) -> Prefix:
    return tuple(WORDS.index(word) for word in sentence.split())
