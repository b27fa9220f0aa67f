"""Scene 1: four walks on the prefix tree of a tiny oracle, under a rule about the last word."""

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
from trialogue.samplers.prefix.sampler import Sampler
from trialogue.samplers.prefix.samples import Samples
from trialogue.verifiers.function import FunctionVerifier
from trialogue_lab.gallery.embedding import without_rounding

Prefix = tuple[int, ...]

WORDS = ("Fish", "Dogs", "swim", "bark", "quietly", "loudly")
LAW = {
    "": {"Fish": 0.6, "Dogs": 0.4},
    "Fish": {"swim": 0.95, "bark": 0.05},
    "Dogs": {"swim": 0.3, "bark": 0.7},
    "Fish swim": {"quietly": 0.98, "loudly": 0.02},
    "Fish bark": {"quietly": 0.5, "loudly": 0.5},
    "Dogs swim": {"quietly": 0.7, "loudly": 0.3},
    "Dogs bark": {"quietly": 0.2, "loudly": 0.8},
}
"""The oracle: probabilities of the next word by the words before it; sentences have three."""
LAST = "loudly"
"""The rule: the word that a sentence is to end in."""
TEMPTING = "Fish swim loudly"
"""The sentence of which the page says how often masking writes it."""
QUERIES = 2400
"""Words that each walk may ask the oracle for."""


class Player(NamedTuple):
    """A walk of the scene: what it is called, and what it does, in plain words."""

    name: str
    says: str
    walk: Sampler[Any]
    values: bool = False


PLAYERS = (
    Player(
        "Masking",
        "picks each next word only among those the rule still allows, and never looks back",
        MaskedDecoding(),
    ),
    Player(
        "Backtracking",
        "writes freely; if the rule is broken, erases the last two words and tries again, at most four times",
        Backtracking(quota=4, stride=2, argmax_redo=False),
    ),
    Player(
        "Four at a time",
        "four drafts side by side; drafts with little future are dropped, the others copied "
        "(sequential Monte Carlo)",
        SequentialMonteCarlo(particles=4, proposal="mask"),
    ),
    Player(
        "Value-guided",
        "knows at every word how likely a good ending still is (the size of its dots), and goes down and up by that",
        ValueGuided(lazy=False),
        values=True,
    ),
)


def oracle() -> Table:
    """The law of sentences of three words."""
    rows = {_tokens(said): row for said, row in LAW.items()}
    return Table(lambda prefix: [rows[prefix].get(word, 0.0) for word in WORDS], len(WORDS), max_length=3)


def rule() -> Verifier:
    """Whether a sentence ends in `LAST`; any prefix may still."""
    return FunctionVerifier(lambda prefix: WORDS[prefix[-1]] == LAST, whole=True)


def scene(seed: int = 0) -> dict[str, Any]:
    """The tree, the restricted law, and of each walk its exact law and samples of `QUERIES` queries.

    Nodes are numbered from the root, level by level; probabilities, and the values that a walk is given (`hopes`), are
    in their order. `runs` are lists of steps as `recorded` has them.
    """
    law, judge = oracle(), rule()
    tree = prefix_tree(law)
    target, hopes = target_distribution(law, judge), exact_values(law, judge)
    walks = []
    for player in PLAYERS:
        verifier = hopes if player.values else judge
        exact = exact_distribution(player.walk, law, verifier)
        samples = generate(
            law, sampler=player.walk, verifier=verifier, num_samples=QUERIES // 3, seed=seed, trace=True
        )
        walks.append(
            {
                "name": player.name,
                "says": player.says,
                "code": repr(player.walk),
                "law": [exact.probabilities.get(prefix, 0.0) for prefix in tree.prefixes],
                "queries": exact.expected_calls,
                "distance": without_rounding(total_variation(exact.probabilities, target)),
                "hopes": [hopes.table[prefix] for prefix in tree.prefixes] if player.values else None,
                "runs": _afforded(recorded(samples, player.walk.rows_per_sample, tree.prefixes), QUERIES),
            }
        )
    reached = np.exp(tree.log_probs)
    return {
        "words": [WORDS[prefix[-1]] if prefix else "" for prefix in tree.prefixes],
        "parents": tree.parent.tolist(),
        "reached": reached.tolist(),
        "tempting": tree.prefixes.index(_tokens(TEMPTING)),
        "target": [target.get(prefix, 0.0) for prefix in tree.prefixes],
        "walks": walks,
    }


def recorded(samples: Samples, members: int, prefixes: Sequence[Prefix]) -> list[dict[str, Any]]:
    """What every sample did: where the `members` of its group went in each step, and the `output`.

    A step has for each member the node it went to and, where there are several, the member it went on from. A
    step that asks the oracle for nothing, which chooses the output among the members, is left out.
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
            before, sources, asked = list(at), list(range(members)), False
            for _, _, member, source, kept, token in step:
                sources[member] = source
                at[member] = before[source][:kept] + ((token,) if token >= 0 else ())
                asked |= token >= 0 or kept < len(before[source])
            if asked:
                nodes = [places[prefix] for prefix in at]
                steps.append([nodes, sources] if members > 1 else [nodes])
        runs.append({"steps": steps, "output": places[samples[sample].tokens]})
    return runs


def _tokens(said: str) -> Prefix:
    return tuple(WORDS.index(word) for word in said.split())


def _afforded(runs: Sequence[dict[str, Any]], queries: int) -> list[dict[str, Any]]:
    """The first of `runs` that take so many queries in all: one for each member and step."""
    costs = itertools.accumulate(sum(len(step[0]) for step in run["steps"]) for run in runs)
    return [run for run, cost in zip(runs, costs, strict=True) if cost <= queries]
