"""Clones of a text: reading the folder, resumed runs, several workers, and rejected options."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file

from executors.elsewhere import Elsewhere
from refusals import expect_error
from trialogue.cli import main
from trialogue.data import Clones, ManyBody
from trialogue.errors import InputError
from trialogue.executors import EXECUTORS
from trialogue.executors.folders import SharedFolder
from trialogue.generation.cloning import maker
from trialogue.generation.cloning.maker import train_factored_network
from trialogue.generation.cloning.making import _start_worker
from trialogue.generation.cloning.settings import NetworkSettings
from trialogue.randomness import generator
from trialogue.training import corpus_score

STORIES = "".join(
    f"One day, {name} found a {colour} {thing} near the old tree. {name} was very happy.\n"
    for name in ("Lily", "Tom", "Max", "Sue", "Ben")
    for colour in ("red", "blue", "big", "shiny")
    for thing in ("ball", "box", "cat", "stone", "cup")
)
SMALL = {
    "layers": "1 2",
    "vocab-size": "260",
    "length": "8",
    "rank": "4",
    "steps": "6",
    "batch-size": "16",
    "sequences": "9",
    "sweeps": "8",
}


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "stories.txt"
    path.write_text(STORIES, encoding="utf-8")
    return path


def run(text: Path, out: Path, **changes: object) -> int:
    options = {**SMALL, **{name.replace("_", "-"): str(value) for name, value in changes.items()}}
    words = ["clone", "--text", str(text), "--out", str(out), "--cache", str(text.parent / "cache")]
    for name, value in options.items():
        words += [f"--{name}", *value.split()]
    return main(words)


def read_clones(out: Path) -> dict[str, tuple[list[list[int]], object]]:
    return {clone.name: (clone.tokens.tolist(), clone.acceptance) for clone in Clones(out)}


def test_a_folder_of_clones_is_made(text, tmp_path, capsys):
    assert run(text, tmp_path / "out") == 0
    captured = capsys.readouterr()
    clones = Clones(tmp_path / "out")
    assert clones.names == ("text", "layers-1", "layers-2")
    assert (clones.length, clones.vocab_size) == (8, 260)
    complete, first, second = clones
    assert complete.tokens.shape == first.tokens.shape == (9, 8)
    assert (first.layers, first.max_order, second.max_order) == (1, 2, 3)
    assert (first.sampler, first.gauge, first.bodies, first.sweeps) == ("gibbs", None, None, 8)
    assert first.network_loss is not None
    assert first.r_hat is not None
    for word in ("order 2", "order 3", "acceptance", "R-hat", "ESS", "mixed", "energy"):
        assert word in captured.out
    assert "sweep 8 of 8" in captured.err


def test_the_text_among_the_clones_is_held_out_text(text, tmp_path):
    run(text, tmp_path / "out", layers="1", sweeps=1)
    clones = Clones(tmp_path / "out")
    for passage in clones.decode(clones["text"].tokens):
        assert passage.replace("<|endoftext|>", "") in STORIES


def test_short_sequences_keep_all_orders(text, tmp_path):
    run(text, tmp_path / "out", layers="2 4", length=3, sweeps=1, sampler="metropolis-by-order")
    clones = Clones(tmp_path / "out")
    assert [(clone.max_order, clone.bodies) for clone in clones][1:] == [(None, 3.0), (None, 3.0)]


@pytest.mark.parametrize("place", ["training", "drawing"])
def test_an_interrupted_run_is_resumed(text, tmp_path, place, monkeypatch, capsys):
    assert run(text, tmp_path / "whole", sampler="metropolis") == 0
    name = "train_factored_network" if place == "training" else "draw"
    original, calls = getattr(maker, name), []

    def interrupted(*arguments: object, **settings: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(maker, name, interrupted)
        assert run(text, tmp_path / "out", sampler="metropolis") == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert "2 of 3 clones and unfinished work are saved in" in last
    assert last.endswith("run the same command to continue")
    assert Clones(tmp_path / "out").names == ("text", "layers-1")
    assert run(text, tmp_path / "out", sampler="metropolis") == 0
    assert read_clones(tmp_path / "out") == read_clones(tmp_path / "whole")


def test_further_sweeps_and_depths_are_added(text, tmp_path):
    run(text, tmp_path / "out", layers="1", sweeps=4)
    run(text, tmp_path / "out", layers="2", sweeps=4)
    run(text, tmp_path / "out", layers="1", sweeps=8)
    run(text, tmp_path / "whole", layers="1 2", sweeps=8)
    found, complete = read_clones(tmp_path / "out"), read_clones(tmp_path / "whole")
    assert list(found) == ["text", "layers-1", "layers-2"]
    assert found["layers-1"] == complete["layers-1"]
    assert found["layers-2"] != complete["layers-2"]
    run(text, tmp_path / "out", layers="1", sweeps=4)
    assert Clones(tmp_path / "out")["layers-1"].sweeps == 8


def test_the_loss_of_a_network_approaches_the_optimum(tmp_path):
    distribution = ManyBody.random(sites=4, vocab_size=3, order=2, rank=1, scale=1.5, seed=1)
    states, p = distribution.states(), distribution.probabilities()
    tokens = states[torch.multinomial(p, 4000, replacement=True, generator=generator(0, "rows"))]
    own = distribution.site_log_probs(states).gather(2, states[:, :, None])[:, :, 0]
    best = float(-(p @ own).mean())
    settings = NetworkSettings(layers=(1,), rank=3, steps=300, batch_size=256)
    network = train_factored_network(settings, 1, tokens, 3, tmp_path)
    assert network.dtype == torch.float32
    assert corpus_score(network, tokens).loss < best + 0.02


BAD: list[tuple[dict[str, object], str]] = [
    ({"vocab_size": 200}, "vocab_size=200"),
    ({"vocab_size": 100_000}, "vocab_size=100000"),
    ({"length": 100_000}, "length=100000"),
    ({"length": 1}, "length=1"),
    ({"sequences": 100_000}, "sequences=100000"),
    ({"layers": "2 2"}, "layers=(2, 2)"),
    ({"layers": "0"}, "layers=0"),
    ({"rank": 1000}, "rank=1000"),
    ({"sweeps": 0}, "sweeps=0"),
    ({"sampler": "hmc"}, "sampler='hmc'"),
    ({"learning_rate": 0}, "learning_rate=0"),
    ({"text": "empty.txt"}, "text="),
    ({"text": "none.txt"}, "text="),
]


def test_invalid_options_are_reported_in_one_line(text, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("")
    for changes, message in BAD:
        options = dict(changes)
        source = tmp_path / str(options.pop("text", text))
        assert run(source, tmp_path / "out", **options) == 2, message
        assert capsys.readouterr().err.splitlines()[-1].startswith(f"trialogue: error: {message}")
        assert not (tmp_path / "out" / "clones.json").exists()
    for words, message in ((["--out", "out"], "text=None"), (["--text", str(text)], "out=None")):
        assert main(["clone", *words]) == 2
        assert message in capsys.readouterr().err
    expect_error("layers", NetworkSettings, layers=())


def test_a_folder_of_other_clones_is_not_changed(text, tmp_path, capsys):
    out = tmp_path / "out"
    run(text, out, layers="1", sweeps=1)
    before = read_clones(out)
    other = tmp_path / "other.txt"
    other.write_text(STORIES.replace("Lily", "Anna"), encoding="utf-8")
    assert run(other, out, layers="1", sweeps=1) == 2
    assert "clones of another text or vocabulary" in capsys.readouterr().err
    assert run(text, out, layers="1", sweeps=1, steps=7) == 2
    assert "steps=7: use another folder: the clones in" in capsys.readouterr().err
    assert run(text, out, layers="1", sweeps=1, sampler="metropolis") == 2
    assert read_clones(out) == before
    settings = out / "making" / "settings.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "seed": 5}))
    assert run(text, out, layers="1", sweeps=1) == 2
    settings.write_text("{")
    assert run(text, out, layers="1", sweeps=1) == 2
    assert "damaged" in capsys.readouterr().err


def test_two_runs_cannot_use_the_same_folder(text, tmp_path, capsys):
    (tmp_path / "out" / "making").mkdir(parents=True)
    with FileLock(tmp_path / "out" / "making" / "lock"):
        assert run(text, tmp_path / "out") == 2
    assert "wait for the other process that creates clones" in capsys.readouterr().err
    assert run(text, tmp_path / "out", layers="1", sweeps=1) == 0


def files(out: Path) -> set[str]:
    """Return the files in the folder of a run, without the lock."""
    made = (path for path in (out / "making").rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(out)) for path in made}


def chains(out: Path) -> dict[str, dict[str, Any]]:
    """Return the saved states of the chains of each clone."""
    kept = (out / "making" / "chains").glob("*.safetensors")
    return {path.name: {name: value.tolist() for name, value in load_file(path).items()} for path in kept}


def test_a_worker_uses_the_requested_threads(text, tmp_path, monkeypatch):
    threads: list[int] = []
    monkeypatch.setitem(EXECUTORS, "elsewhere", Elsewhere)
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    assert run(text, tmp_path / "out", layers="1", executor="elsewhere", threads=3) == 0
    assert threads == [3, 3]


def test_two_processes_make_the_same_clones_as_one(text, tmp_path, capsys):
    assert run(text, tmp_path / "alone") == 0
    assert run(text, tmp_path / "apart", workers=2) == 0
    assert read_clones(tmp_path / "apart") == read_clones(tmp_path / "alone")
    assert files(tmp_path / "apart") == files(tmp_path / "alone")
    table = capsys.readouterr().out.rpartition("held-out")[0]
    assert table.rindex("text") < table.rindex("layers-1") < table.rindex("layers-2")


def test_clones_made_without_a_shared_folder_are_returned_and_resumed(text, tmp_path, monkeypatch):
    workers = 2
    monkeypatch.setattr(SharedFolder, "shared", False)
    monkeypatch.setitem(EXECUTORS, "elsewhere", Elsewhere)
    assert run(text, tmp_path / "alone") == 0
    assert run(text, tmp_path / "apart", executor="elsewhere", workers=workers) == 0
    assert read_clones(tmp_path / "apart") == read_clones(tmp_path / "alone")
    assert files(tmp_path / "apart") == files(tmp_path / "alone")
    # Further sweeps continue from the returned states.
    assert run(text, tmp_path / "alone", sweeps=10) == 0
    assert run(text, tmp_path / "apart", sweeps=10, executor="elsewhere", workers=workers) == 0
    assert read_clones(tmp_path / "apart") == read_clones(tmp_path / "alone")
    assert chains(tmp_path / "apart") == chains(tmp_path / "alone") != {}
    assert all(clone.sweeps in (None, 0, 10) for clone in Clones(tmp_path / "apart"))


def test_a_worker_that_cannot_start_leaves_no_folder(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with SharedFolder(tmp_path / "work").open() as folder:
        pass
    maker: Any = None
    # A file occupies the path of the second folder. The traceback keeps all objects while the error is held.
    with pytest.raises(InputError, match="trialogue-") as error:
        _start_worker(maker, folder, {"networks": b"", "networks/layers-1": b""})
    assert error.value.field == "path"
    assert list(tmp_path.iterdir()) == [tmp_path / "work"]
