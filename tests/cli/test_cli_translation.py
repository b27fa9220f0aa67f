"""The commands of translation: training a model, translating lines, and errors for invalid input."""

import io
import json
import re

import pytest

from refusals import commands_without_expected_error
from trialogue import cli
from trialogue.data.parallel import ParallelText, split
from trialogue.generation.translation.scores import translation_quality
from trialogue.storage import compute_sha256

PAIRS = [
    (f"{first} {second} {third}", f"{third} {first} {second}")
    for first in "abcd"
    for second in "efgh"
    for third in "klmn"
]
TINY = "--vocab 264 --test 4 --steps 3 --layers 1 --width 8 --heads 2 --mlp-width 16 --max-length 8 --batch-size 8"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    (folder / "uneven.tsv").write_text("a\tb\nc\td\te\n")
    (folder / "sources.txt").write_text("a\nb\n")
    (folder / "targets.txt").write_text("a\n")
    return folder


@pytest.fixture
def run(folder, monkeypatch, run_command):
    monkeypatch.chdir(folder)

    def run_with_input(*words, lines=""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        return run_command(*words)

    return run_with_input


def test_a_model_is_trained_and_translates(run, folder):
    code, out, _ = run(
        "train-translation", "--text", "pairs.tsv", "--out", "model", "--distil", *TINY.split()
    )
    assert code == 0
    assert out.startswith("twin: BLEU")
    assert "\nrefiner: BLEU" in out
    held_out = {"held-out.sources.txt", "held-out.targets.txt"}
    names = {"refiner.safetensors", "translation.json", "twin.safetensors", "vocabulary.json"} | held_out
    assert {path.name for path in (folder / "model").iterdir()} == names
    check_card(run, folder / "model", out)
    for words in ((), ("--stream",), ("--network", "twin"), ("--start", "mask", "--keep", "confident")):
        code, out, err = run("translate", "--model", "model", *words, lines="a e k\n\nb f l\n")
        assert (code, out.count("\n"), out.split("\n")[1]) == (0, 3, "")
        assert err.startswith("3 lines, 1 empty, 0 refused")
    code, out, err = run("translate", "--model", "model", "--json", lines="a e k\n" + "a " * 40 + "\nlast")
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 2
    assert [record["line"] for record in records] == [1, 2, 3]
    assert set(records[1]) == {"line", "source", "translation", "error"}
    assert "line 2: " in err
    code, out, err = run("translate", "--model", "model", "--truncate", "--out", "out.txt", lines="a " * 40)
    assert (code, out) == (0, "")
    assert (folder / "out.txt").read_text().count("\n") == 1
    (folder / "mixed.txt").write_bytes(b"a e k\nb \xff f\nc g m\n")
    code, out, err = run("translate", "--model", "model", "--input", "mixed.txt")
    assert (code, out.count("\n")) == (2, 3)
    assert "line 2: convert the text to UTF-8: character 3" in err
    assert out.splitlines()[1] == ""
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("model/translation.json")
    held = {name: compute_sha256(folder / "model" / name) for name in names}
    (folder / "empty" / "translation.json").write_text('{"networks": [], "vocabulary": "x"}')
    for words, field in (
        (("--input", "mixed.txt", "--out", "mixed.txt"), "out='mixed.txt'"),
        (("--device", "nowhere"), "device='nowhere'"),
        (("--alpha", "1e6"), "alpha=1000000.0"),
        (("--model", "empty"), "model='empty'"),
        (("--steps", "0"), "steps=0"),
        (("--hypotheses", "0"), "hypotheses=0"),
        (("--keep", "confident"), "start='random'"),
        (("--input", "none.txt"), "input='none.txt'"),
        *((("--out", f"model/{name}"), f"out='model/{name}'") for name in names),
        (("--out", "link"), "out='link'"),
    ):
        code, _, err = run("translate", "--model", "model", *words)
        assert (code, err.count("\n")) == (2, 1), words
        assert field in err
    assert (folder / "mixed.txt").read_bytes().count(b"\n") == 3
    assert held == {name: compute_sha256(folder / "model" / name) for name in names}
    code, _, err = run("train-translation", "--text", "pairs.tsv", "--out", "model", *TINY.split())
    assert (code, err.count("\n")) == (2, 1)
    assert "out='model': use another folder or delete this one" in err


@pytest.mark.parametrize("command", ["train-translation", "translate"])
def test_every_option_is_documented(command, capsys):
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    shown = re.split(r"\n\W*(?=--[a-z])", capsys.readouterr().out)[1:]
    options = [re.split("[─-]{3}", each)[0] for each in shown]
    assert len(options) > 15
    assert [each for each in options if not re.search(r"[a-z]{2} [^.]*[.](\s|$)", each)] == []


def check_card(run, model, printed):
    """Check the sources in the card, and recompute the scores of the held-out pairs."""
    card = json.loads((model / "translation.json").read_text())
    assert card["files"] == [{"name": "pairs.tsv", "sha256": compute_sha256("pairs.tsv")}]
    held_out = card["held_out"]
    assert {name: held_out[name] for name in ("test", "of", "seed")} == {"test": 4, "of": 64, "seed": 0}
    assert (card["pairs"], held_out["validation"], card["columns"]) == (59, 1, [1, 2])
    tested = ParallelText.read_pair(*(model / name for name in held_out["files"]))
    again = split(ParallelText.read("pairs.tsv"), 4, 1, seed=0)
    assert (tested.sources, tested.targets) == (again.test.sources, again.test.targets)
    assert set(card["scores"]) == {"refiner", "twin"}
    for network, scores in card["scores"].items():
        words = ("--network", network, "--truncate", "--input", "model/held-out.sources.txt")
        _, out, _ = run("translate", "--model", "model", *words)
        found = translation_quality(out.splitlines(), tested.targets)
        assert found._asdict().items() <= scores.items()
        assert f"{network}: BLEU {found.bleu:.1f}, chrF {found.chrf:.1f}" in printed
        assert found.bleu_signature in printed
        assert found.chrf_signature in printed
        assert scores["translated_with"]["steps"] == 4


def test_other_files_in_the_folder_are_kept(run, folder):
    (folder / "mine" / "training").mkdir(parents=True)
    (folder / "mine" / "training" / "notes.txt").write_text("kept")
    assert (
        run("train-translation", "--text", "pairs.tsv", "--out", "mine", "--tokenize", "char", *TINY.split())[
            0
        ]
        == 0
    )
    assert (folder / "mine" / "training" / "notes.txt").read_text() == "kept"


PAIRED = "--text pairs.tsv --out m"
BAD: list[tuple[str, str]] = [
    ("translate", "model=None"),
    ("translate --model .", "model='.'"),
    ("train-translation --out m", "text=None"),
    ("train-translation --text pairs.tsv", "out=None"),
    ("train-translation --text none.tsv --out m", "none.tsv"),
    ("train-translation --text uneven.tsv --out m", "line 2 has 3, but line 1 has 2"),
    (f"train-translation {PAIRED} --columns 1 3", "columns=(1, 3)"),
    (f"train-translation {PAIRED} --steps 0", "steps=0"),
    (f"train-translation {PAIRED} --test 64", "test=64"),
    (f"train-translation {PAIRED} --vocab 10", "vocab=10"),
    (f"train-translation {PAIRED} {TINY} --batch-size 60", "batch_size=60"),
    (f"train-translation {PAIRED} {TINY} --vocab 9", "vocab=9"),
    (f"train-translation {PAIRED} --distil --networks twin", "distil"),
    (
        "train-translation --text sources.txt --targets targets.txt --out m",
        "has 1 lines, but sources.txt has 2",
    ),
    ("train-translation --text a --targets b --out m --columns 1 5", "columns=(1, 5)"),
]


def test_invalid_input_is_reported_in_one_line_and_writes_nothing(run, folder):
    assert not commands_without_expected_error(BAD, run)
    assert not (folder / "m").exists()
