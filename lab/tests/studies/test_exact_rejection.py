"""Tests of the study `exact-rejection`: ASAp, checks on trees, requests and statistics."""

import json
import math

import pytest

from trialogue.samplers import generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import Prefix, RandomTree, viable
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.exact_rejection import statistics as stats
from trialogue_lab.studies.exact_rejection import trees
from trialogue_lab.studies.exact_rejection.requests import FREE, SCHEMAS, make_request


class PublishedTrie:
    """Success rates as in the published code: nodes of allowed tokens with rate 1, updated from the leaves upwards."""

    def __init__(self, tree: RandomTree) -> None:
        self.tree = tree
        self.rates: dict[Prefix, float] = {}

    def visit(self, output: Prefix) -> None:
        prefixes = [output[:length] for length in range(len(output))]
        for prefix in prefixes:
            for child, _ in self.tree.children(prefix):
                if self.tree.allows(child):
                    self.rates.setdefault(child, 1.0)
        for prefix in reversed(prefixes):
            self.rates[prefix] = sum(
                p * self.rates[x] for x, p in self.tree.children(prefix) if x in self.rates
            )

    def distribution(self, prefix: Prefix = (), mass: float = 1.0) -> dict[Prefix, float]:
        if self.tree.complete(prefix):
            return {prefix: mass}
        weights = {
            x: p * self.rates.get(x, 1.0) for x, p in self.tree.children(prefix) if self.tree.allows(x)
        }
        found: dict[Prefix, float] = {}
        for child, weight in weights.items():
            found |= self.distribution(child, mass * weight / math.fsum(weights.values()))
        return found


@pytest.mark.parametrize(
    "tree", [viable(RandomTree(3, vocab=3, eos=1)), trees.RareTree(5, vocab=3, horizon=4)], ids=str
)
def test_asap_follows_the_published_algorithm(tree: RandomTree) -> None:
    verifier, trie, sampler = (
        trees.TreeMaskVerifier(tree.allows),
        PublishedTrie(tree),
        trees.RecordingGrammarAligned(),
    )
    samples = generate(tree.table(), sampler=sampler, verifier=verifier, num_samples=6, seed=1)
    for table, output in zip([None, *sampler.successive], samples.completions(), strict=True):
        found = exact_distribution(
            trees.RecordingGrammarAligned(start=table), tree.table(), verifier
        ).probabilities
        expected = trie.distribution()
        assert found == {x: pytest.approx(p, rel=1e-12) for x, p in expected.items()}
        trie.visit(tuple(output))
    assert len(set(map(tuple, samples.completions()))) > 1


def test_checks_accept_adaptive_rejection_and_reject_asap() -> None:
    for row in trees.measure_trees(4, history=3):
        errors = [row["first_error"], row["later_error"], row["second_error"]]
        if row["sampler"] == "ASAp":
            assert max(errors) > 1e-3
        else:
            assert max(errors) < 1e-12
            assert row["acceptance_increase"] > 0
            assert row["tables"] > 1


def test_only_four_outputs_of_a_rare_tree_are_allowed() -> None:
    tree = trees.RareTree(2, vocab=3, horizon=4)
    assert sorted(filter(tree.allows, tree.distribution())) == sorted(tree.outputs())
    assert len(set(tree.outputs())) == 4


@pytest.mark.parametrize("name", SCHEMAS)
def test_requests_have_an_example_of_their_schema(name: str) -> None:
    asked = make_request(name, 0)
    schema = json.loads(asked.schema)
    example = json.loads(asked.text.split("Another example: ")[1].split("\n")[0])
    assert list(example) == schema["required"] == list(schema["properties"])
    for field, kind in schema["properties"].items():
        assert example[field] in kind.get("enum", [example[field]])
        assert (
            kind.get("minimum", -math.inf)
            <= (example[field] if "minimum" in kind else 0)
            <= kind.get("maximum", 3e3)
        )
    assert {"type": "string"} in schema["properties"].values() if name in FREE else True
    assert len({make_request(name, seed).text for seed in range(6)}) > 1


def test_failed_outputs_count_against_exact_sampling() -> None:
    common = {"measure": "request", "outputs": 4, "calls": 80, "masked_outputs": 4, "masked_calls": 20}
    rows = Rows(
        [
            {**common, "seed": 0, "free": False, "accepted": 4, "masked_effective": 0.5},
            {**common, "seed": 0, "free": True, "accepted": 1, "masked_effective": 3.0},
            {**common, "seed": 1, "free": True, "accepted": 0, "masked_effective": 0.0},
        ],
        "measure",
    )
    assert stats.share_within(4.0)(rows).tolist() == [0.5, 0.0]
    assert stats.share_within(16.0)(rows).tolist() == [1.0, 0.0]
    assert stats.share_within(4.0, free=False)(rows).tolist() == [1.0]
    assert stats.beyond_budget()(rows).tolist() == [0.375, 1.0]
    assert stats.better_than_weights()(rows).tolist() == [0.5, 0.0]
