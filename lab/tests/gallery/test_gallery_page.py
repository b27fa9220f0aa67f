"""Tests that the gallery page is self-contained, reproducible and exact."""

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from html_page import Page
from refusals import commands_without_expected_error
from trialogue import exact_distribution, generate, run_chain, target_distribution, total_variation, unmask
from trialogue.samplers import MaskedDecoding, SequentialMonteCarlo
from trialogue.samplers.unmasking import Fixed, Ordered
from trialogue_lab.gallery import domain_walls, reveal_orders, rule_at_the_end, two_cliques, waking_layers
from trialogue_lab.gallery.document import _format_percent
from trialogue_lab.gallery.embedding import encode_base_36, round_floats

ROOT = Path(__file__).parents[2]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def recorded(page: Path) -> dict[str, Any]:
    """Return the recorded data of the page."""
    found = re.search(
        r'<script type="application/json" id="recorded">(.*?)</script>', page.read_text("utf-8")
    )
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def test_the_page_is_valid_small_and_self_contained(page: Path) -> None:
    text = page.read_text("utf-8")
    read = Page(text)
    assert len(set(read.ids)) == len(read.ids)
    assert all(reference.startswith(("#", "data:")) for reference in read.references)
    assert "default-src 'none'" in text
    assert not re.search(
        r"https?://(?!www\.w3\.org/2000/svg)|url\((?!#)|@import|\bfetch\(|XMLHttpRequest", text
    )
    assert len(text.encode()) < 700_000


def test_equal_arguments_give_equal_scenes(recorded: dict[str, Any]) -> None:
    """Other tests compare the scenes of chains and walls with their samplers."""
    again = {"walks": rule_at_the_end.make_scene(0), "layers": waking_layers.make_scene(ROOT / "results")}
    assert round_floats(again["walks"]) == recorded["walks"]
    assert round_floats(again["layers"]) == recorded["layers"]
    assert rule_at_the_end.make_scene(1)["walks"][0]["runs"] != again["walks"]["walks"][0]["runs"]


def test_distributions_of_samplers_are_exact(recorded: dict[str, Any]) -> None:
    scene = recorded["walks"]
    oracle, verifier = rule_at_the_end.make_oracle(), rule_at_the_end.make_verifier()
    target = target_distribution(oracle, verifier)
    # Expected shares of sentences that end with "loudly", computed by hand.
    loudly = {"Dogs bark": 0.4 * 0.7 * 0.8, "Dogs swim": 0.4 * 0.3 * 0.3, "Fish swim": 0.6 * 0.95 * 0.02}
    loudly["Fish bark"] = 0.6 * 0.05 * 0.5
    expected = {start: p / sum(loudly.values()) for start, p in loudly.items()}
    shown = {sentence(scene, node): p for node, p in enumerate(scene["target"]) if p > 0}
    assert shown == pytest.approx({f"{start} loudly": p for start, p in expected.items()}, rel=1e-5)
    masked = exact_distribution(MaskedDecoding(), oracle, verifier)
    assert scene["walks"][0]["distance"] == pytest.approx(
        total_variation(masked.probabilities, target), rel=1e-5
    )
    assert scene["walks"][0]["probabilities"][scene["tempting"]] == pytest.approx(0.6 * 0.95)
    assert scene["walks"][3]["distance"] == 0
    assert sentence(scene, scene["tempting"]) == rule_at_the_end.TEMPTING


def sentence(scene: dict[str, Any], node: int) -> str:
    words: list[str] = []
    while node > 0:
        words.insert(0, scene["words"][node])
        node = scene["parents"][node]
    return " ".join(words)


def test_recorded_runs_agree_with_the_samplers(recorded: dict[str, Any]) -> None:
    """Recorded outputs and numbers of queries agree with the samplers."""
    scene = recorded["walks"]
    oracle, verifier = rule_at_the_end.make_oracle(), rule_at_the_end.make_verifier()
    for place, player in enumerate(rule_at_the_end.PLAYERS[:3]):
        runs = scene["walks"][place]["runs"]
        samples = generate(
            oracle,
            sampler=player.sampler,
            verifier=verifier,
            num_samples=rule_at_the_end.QUERIES // 3,
            seed=0,
        )
        assert [sentence(scene, run["output"]) for run in runs] == [
            " ".join(rule_at_the_end.WORDS[token] for token in sample.tokens)
            for sample in samples[: len(runs)]
        ]
        costs = [sum(len(step[0]) for step in run["steps"]) for run in runs]
        assert costs == samples.queries[: len(runs)].tolist()
        assert rule_at_the_end.QUERIES - max(costs) < sum(costs) <= rule_at_the_end.QUERIES


def test_copies_of_drafts_have_their_source() -> None:
    """The nodes of a step continue the nodes of their sources."""
    oracle, verifier = rule_at_the_end.make_oracle(), rule_at_the_end.make_verifier()
    sampler = SequentialMonteCarlo(particles=4, proposal="mask")
    samples = generate(oracle, sampler=sampler, verifier=verifier, num_samples=50, seed=3, trace=True)
    prefixes = [()] + [(a,) for a in (0, 1)] + [(a, b) for a in (0, 1) for b in (2, 3)]
    prefixes += [(a, b, c) for a in (0, 1) for b in (2, 3) for c in (4, 5)]
    runs = rule_at_the_end.record_runs(samples, 4, prefixes)
    copied = 0
    for run in runs:
        at = [0] * 4
        for nodes, sources in run["steps"]:
            assert [prefixes[node][:-1] for node in nodes] == [prefixes[at[source]] for source in sources]
            copied += sources != [0, 1, 2, 3]
            at = nodes
        assert run["output"] in at
    assert copied > 0


def test_walls_agree_with_counts_and_exact_expectations(recorded: dict[str, Any]) -> None:
    walls, chain = recorded["walls"], domain_walls.make_chain()
    level = walls["levels"][8]
    texts = chain.sample(domain_walls.SAMPLES, domain_walls.LENGTH, level["temperature"], seed=0)
    assert level["text"] == "".join(domain_walls.LETTERS[letter] for letter in texts[0].tolist())
    assert level["expected"] == pytest.approx(
        chain.expected_domain_walls(160, level["temperature"]), rel=1e-5
    )
    for labels, count in zip(level["labels"], level["walls"], strict=True):
        assert sum(a != b for a, b in itertools.pairwise(labels)) == count
    expected = [level["expected"] for level in walls["levels"]]
    assert expected == sorted(expected)


def test_recorded_chains_agree_with_the_sampler(recorded: dict[str, Any]) -> None:
    """A new run has the same counts of all copies and the same spins of the first copy."""
    for level, coupling in zip(recorded["cliques"]["levels"], two_cliques.COUPLINGS, strict=True):
        ising = two_cliques.make_model(coupling)
        start = ising.states()[:1].expand(two_cliques.COPIES, -1)
        for shown, (chain, _) in zip(level["chains"], two_cliques.CHAINS.values(), strict=True):
            run = run_chain(chain, ising, start=start, steps=100, seed=0, thin=1, require_ergodic=False)
            assert shown["copies"][1:] == encode_base_36(two_cliques.count_up_spins(run.samples))
            assert shown["spins"][1:] == encode_base_36(run.samples[:, 0])


def test_distribution_of_two_cliques_is_exact(recorded: dict[str, Any]) -> None:
    cliques = recorded["cliques"]
    for level in cliques["levels"]:
        # The cliques are independent, so the distribution is a product over magnetisations.
        ups = np.arange(5)
        ways, magnetisation = np.array([1, 4, 6, 4, 1]), 2.0 * ups - 4
        one_clique = ways * np.exp(level["coupling"] * (magnetisation**2 - 4) / 2 + 0.1 * magnetisation)
        product = np.outer(one_clique, one_clique) / one_clique.sum() ** 2
        assert np.allclose(np.reshape(level["target"], (5, 5)), product, rtol=1e-5, atol=0)
        for chain in level["chains"]:
            assert set(chain["copies"][0]) == {"0"}
            assert chain["distance"][0] == pytest.approx(1 - product[0, 0], rel=1e-4)
        # The distance from a stationary distribution never increases.
        assert np.diff(level["chains"][0]["distance"]).max() < 1e-9
        jointly, at_once = (chain["distance"][-1] for chain in level["chains"])
        assert jointly < 0.001 < at_once


def test_recorded_reveals_agree_with_the_sampler_and_are_exact(recorded: dict[str, Any]) -> None:
    scene, ising = recorded["reveals"], two_cliques.make_model(reveal_orders.COUPLING)
    assert scene["target"] == recorded["cliques"]["levels"][1]["target"]
    for level in scene["levels"]:
        for shown, (order, _) in zip(level["orders"], reveal_orders.ORDERS.values(), strict=True):
            sampler = Ordered(order, Fixed(level["positions"]))
            samples = unmask(ising, sampler, num_samples=reveal_orders.SAMPLES)
            assert shown["spins"] == encode_base_36(samples.tokens)
            passes = np.array([sorted(row) for row in shown["passes"]]).astype(int)
            assert (passes == 1 + np.arange(8) // level["positions"]).all()
            assert (shown["distance"] == 0) == (level["positions"] == 1)
    # Four spins of a group at once are independent, and so are the groups.
    up = float((ising.probabilities() * ising.states()[:, 0]).sum())
    one_clique = np.array([1, 4, 6, 4, 1]) * up ** np.arange(5) * (1 - up) ** np.arange(4, -1, -1)
    row = scene["levels"][2]["orders"][1]
    assert np.allclose(row["output"], np.outer(one_clique, one_clique).ravel(), rtol=1e-5, atol=0)
    # The order within a group does not matter, so the distance does not change if these spins are counted.
    assert row["distance"] == pytest.approx(
        np.abs(row["output"] - np.array(scene["target"])).sum() / 2, rel=1e-4
    )
    ratio = np.array(row["output"]) / scene["target"]
    assert row["divergence"] == pytest.approx((row["output"] * np.log(ratio)).sum(), rel=1e-4)


def test_trainings_agree_with_the_rows_of_the_study(recorded: dict[str, Any]) -> None:
    layers = recorded["layers"]
    (file,) = (ROOT / "results" / "interaction-order" / layers["result"].split("@")[1]).glob("rows.jsonl")
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    trainings = [row for row in rows if row["kind"] == "training" and row["layers"] == 3]
    assert [training["onsets"] for training in layers["trainings"]] == [
        [row[f"onset_{layer}"] for layer in (1, 2, 3)]
        for row in sorted(trainings, key=lambda row: row["seed"])[: waking_layers.SHOWN]
    ]
    assert layers["count"] == len(trainings)
    assert layers["last_first"] == sum(
        row["onset_3"] < min(row["onset_1"], row["onset_2"]) for row in trainings
    )
    training = layers["trainings"][4]
    curve = [
        row
        for row in rows
        if row["kind"] == "curve" and (row["seed"], row["layers"]) == (training["seed"], 2)
    ]
    assert training["curves"][1]["losses"] == pytest.approx([row["loss"] for row in curve], rel=1e-5)


def test_text_shows_the_recorded_numbers(page: Path, recorded: dict[str, Any]) -> None:
    text = " ".join(page.read_text("utf-8").split("<script", maxsplit=1)[0].split())
    scene, layers = recorded["walks"], recorded["layers"]
    masked = _format_percent(scene["walks"][0]["probabilities"][scene["tempting"]]).replace("\u00a0", " ")
    assert f"{masked} of its sentences" in text
    assert f"In {layers['last_first']} of {layers['count']} trainings" in text
    assert "{{" not in text


def test_missing_rows_and_folders_are_reported(tmp_path: Path, run_command: Run) -> None:
    out = tmp_path / "gallery.html"
    cases = [
        (f"gallery --out {out} --results {tmp_path}", "trialogue run interaction-order"),
        (f"gallery --out {tmp_path / 'no' / 'gallery.html'}", "there is no folder"),
    ]
    assert commands_without_expected_error(cases, run_command) == []
    assert not out.exists()
