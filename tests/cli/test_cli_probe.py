"""`trialogue probe`: the written files, the printed results, and errors for invalid input."""

import json
from functools import partial
from pathlib import Path

import pytest

from generation.command import CommandResult
from models.tiny_pretrained import save_tiny
from refusals import commands_without_expected_error
from training.planted_signal import marked_texts
from trialogue.training.probes.probe_files import load_probe

FAST = ("--layers", "1", "--depths", "1", "--epochs", "5", "--threshold", "youden")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a tiny model and labelled texts."""
    folder = tmp_path_factory.mktemp("probe")
    save_tiny(folder / "tiny", seed=1)
    lines = [
        {"prompt": text.prompt, "completion": text.completion, "error": text.error}
        for text in marked_texts(120).texts
    ]
    write(folder / "texts.jsonl", *lines)
    write(folder / "correct.jsonl", *[{"text": str(index), "label": 1} for index in range(20)])
    write(folder / "long.jsonl", *lines, {"text": "cat " * 400, "label": 0})
    write(folder / "bad.jsonl", *lines, {"text": "cat"})
    return folder


def write(path: Path, *lines: object) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def run(folder, monkeypatch, run_command):
    """Run the command in the folder, in this process."""
    monkeypatch.chdir(folder)
    return lambda *tokens: CommandResult(*run_command("probe", *tokens))


def test_a_probe_and_a_card_are_written(run, folder):
    (folder / "made").mkdir()
    result = run("--model", "tiny", "--data", "texts.jsonl", "--out", "made/p.safetensors", *FAST)
    assert (result.code, result.err) == (0, "")
    file = load_probe(folder / "made" / "p.safetensors")
    assert (file.layer, file.probe.depth, file.model, file.data) == (1, 1, "tiny", "texts.jsonl")
    assert f"AUROC {file.numbers.auroc:.3f}" in result.out
    assert f"threshold {file.threshold:.4g}: rejects" in result.out
    assert result.out.endswith("probe: made/p.safetensors\ncard: made/p.md\n")
    assert (folder / "made" / "p.md").exists()


def test_settings_are_passed_to_the_training(run, folder):
    tokens = ("--layers", "all", "--depths", "1", "2", "--epochs", "2", "--seed", "3", "--chat", "--eos")
    more = ("--validation", "0.4", "--test", "0.2", "--false-rejections", "0.3", "--correct-prefixes", "2")
    result = run("--model", "tiny", "--data", "texts.jsonl", *tokens, *more, "--calibration", "none")
    assert result.code == 0
    file = load_probe(folder / "probe.safetensors")
    assert {(entry.layer, entry.depth) for entry in file.grid} == {(1, 1), (1, 2), (-1, 1), (-1, 2)}
    assert file.calibration == (1.0, 0.0)
    expected = {"layers": [1, -1], "epochs": 2, "seed": 3, "chat": True, "eos": True, "validation": 0.4}
    expected |= {
        "test": 0.2,
        "false_rejections": 0.3,
        "threshold": None,
        "correct_prefixes": 2,
        "calibration": "none",
    }
    assert file.settings | expected == file.settings


BAD: list[tuple[str, str]] = [
    ("--data none.jsonl", "cannot be read"),
    ("--data bad.jsonl", "bad.jsonl line 121"),
    ("--data correct.jsonl", "add more erroneous examples"),
    ("--data long.jsonl", "long.jsonl line 121: tokens"),
    ("--layers some", "all, or every:N"),
    ("--layers 9", "has 2 blocks"),
    ("--threshold much", "--threshold: invalid: use P|youden"),
    ("--threshold 1.5", "threshold=1.5: use at most 1"),
    ("--out probe.bin", "ends in .safetensors"),
    ("--out none/p.safetensors", "there is no folder none; create it"),
    ("--false-rejections 0.1", "threshold='youden': not allowed with"),
    ("--layer 3", "option='--layer': unknown option: did you mean --layers?"),
]


def test_invalid_input_is_reported_in_one_line(run):
    assert not commands_without_expected_error(
        BAD, partial(run, "--model", "tiny", "--data", "texts.jsonl", *FAST)
    )


@pytest.mark.parametrize("positions", [False, True])
def test_too_few_texts_are_reported_before_the_model_is_loaded(positions, run, folder):
    # Six texts are used for calibration, and half of them are correct. They are too few to guarantee the rate.
    labels = [
        {"error": 0 if index % 2 else None} if positions else {"label": index % 2} for index in range(60)
    ]
    write(folder / "few.jsonl", *({"text": f"cat {index}"} | label for index, label in enumerate(labels)))
    rate = ("--false-rejections", "0.001") if positions else ()
    number = 3 * 8 if positions else 3
    words = f"{number} correct examples, use at least {1 / (number + 1):.4f}"
    none = partial(run, "--model", "none/such", "--data", "few.jsonl", *rate)
    assert not commands_without_expected_error([("", words)], none)
