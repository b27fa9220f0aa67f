"""`trialogue inspect` and `trialogue compare`: pages, files, resumption and errors for invalid input."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import transformers
from matplotlib.figure import Figure

from models.tiny_pretrained import save_tiny, tiny_model, tiny_tokenizer
from refusals import wrong_refusals
from trialogue import cli
from trialogue.errors import InputError
from trialogue.inspection.measures.copying import Copying
from trialogue.inspection.measures.measure import MEASURES, Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Point, Quantity, number
from trialogue.inspection.page import Series, table
from trialogue.inspection.picture import _curve
from trialogue.inspection.subject import Subject

QUICK = ("--measures", "copying", "--effort", "0.1")


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, two training checkpoints and an inspection of the model."""
    folder = tmp_path_factory.mktemp("inspect")
    save_tiny(folder / "model")
    for step in (5, 10):
        save_tiny(folder / "training" / f"checkpoint-{step}", seed=step)
    assert cli.main(["inspect", str(folder / "model"), "--out", str(folder / "found"), *QUICK]) == 0
    shutil.copytree(folder / "found", folder / "moved")
    (folder / "moved" / "work" / "model-model").rename(folder / "moved" / "work" / "model-checkpoint-5")
    return folder


@pytest.fixture
def run(run_command: Run) -> Run:
    return run_command


def test_an_inspection_writes_a_page_and_a_file(place: Path) -> None:
    record = json.loads((place / "found" / "inspection.json").read_text())
    assert record["kind"] == "causal"
    measure = record["measures"]["copying"]
    [checkpoint] = measure["checkpoints"]
    assert checkpoint["files"].startswith("sha256 ")
    assert [one["name"] for one in checkpoint["quantities"]][:2] == [
        "copied, mean over distances 4 to 64",
        "copied",
    ]
    assert len(measure["control"]) == len(checkpoint["quantities"])
    page = (place / "found" / "inspection.html").read_text()
    assert "<svg" in page
    assert "random weights" in page
    assert "color-scheme" in page
    assert not re.search(r'(src|href)="http', page.replace('xlink:href="http', ""))


def test_finished_measures_are_not_repeated(
    place: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(place / "found", tmp_path / "found")
    (tmp_path / "found" / "work" / "control" / "copying.json").unlink()
    words = ("inspect", place / "model", "--out", tmp_path / "found", *QUICK)
    code, _, err = run(*words)
    assert code == 0
    assert "copying of random weights: about" in err
    assert "copying: about" not in err
    before, after = (json.loads((at / "found" / "inspection.json").read_text()) for at in (place, tmp_path))
    assert before == after
    pages = [(at / "found" / "inspection.html").read_bytes() for at in (place, tmp_path)]
    assert pages[0] == pages[1]

    monkeypatch.setattr(Copying, "take", raising(AssertionError()))
    code, _, err = run(*words)
    assert code == 0
    assert "loading" not in err
    # Further measures are added to the existing ones.
    code, out, err = run(*words[:4], "--effort", 0.1, "--measures", "decoding")
    assert code == 0
    assert "copying: about" not in err
    assert re.search(r"decoding: about [\d,]+ tokens, \d+ s", err)
    record = json.loads((tmp_path / "found" / "inspection.json").read_text())
    assert list(record["measures"]) == ["copying", "decoding"]
    assert "top-p 0.9" in out


def test_the_checkpoints_of_a_training_are_inspected(place: Path, tmp_path: Path, run: Run) -> None:
    code, out, err = run("inspect", place / "training", "--out", tmp_path / "found", *QUICK)
    assert code == 0
    assert err.count("copying of random weights: about") == 1
    assert "step 10" in out
    record = json.loads((tmp_path / "found" / "inspection.json").read_text())
    steps = [one["step"] for one in record["measures"]["copying"]["checkpoints"]]
    assert steps == [5, 10]
    page = (tmp_path / "found" / "inspection.html").read_text()
    assert 'id="copying-steps-' in page
    assert "step 5" in page
    file = tmp_path / "found" / "work" / "step-10" / "copying.json"
    refused = json.loads(file.read_text())
    for key in ("quantities", "tokens", "seconds"):
        del refused[key]
    file.write_text(json.dumps({**refused, "refused": "it gives no finite number", "lacks": None}))
    assert run("inspect", place / "training", "--out", tmp_path / "found", *QUICK)[0] == 0
    record = json.loads((tmp_path / "found" / "inspection.json").read_text())
    assert [one["step"] for one in record["measures"]["copying"]["checkpoints"]] == [5]
    assert record["refused"] == {"copying of step-10": "it gives no finite number"}
    assert "copying of step-10" in (tmp_path / "found" / "inspection.html").read_text()


def test_a_failed_start_does_not_fix_the_settings(place: Path, tmp_path: Path, run: Run) -> None:
    words = ("inspect", place / "model", "--out", tmp_path / "found")
    assert "dtype='int3': use auto" in run(*words, *QUICK, "--dtype", "int3")[2]
    code, _, err = run(*words, "--effort", 7, "--measures", "copying", "--executor", "ray://head")
    assert code == 2
    assert "executor=" in err
    assert run(*words, *QUICK)[0] == 0
    # An unknown type is reported as unknown, not as a changed setting.
    assert "dtype='int3': use auto" in run(*words, *QUICK, "--dtype", "int3")[2]


def test_inspections_are_compared(place: Path, tmp_path: Path, run: Run) -> None:
    run("inspect", place / "training" / "checkpoint-5", "--out", tmp_path / "other", *QUICK)
    words = (place / "found" / "inspection.json", tmp_path / "other", "--out", tmp_path / "both.html")
    code, out, _ = run("compare", *words)
    assert code == 0
    assert "copied, tokens to the source: 64" in out
    assert "checkpoint-5" in " ".join(out.split())
    page = (tmp_path / "both.html").read_text()
    assert "checkpoint-5" in page
    assert "copied, tokens to the source: 16" in page
    assert "random weights" not in page
    code, out, _ = run("compare", *words, "--control")
    assert code == 0
    assert "random weights" in " ".join(out.split())
    assert (tmp_path / "both.html").read_text().count(", random weights</th>") == 2
    code, _, err = run("compare", "biased-coin", "biased-coin", "--control")
    assert (code, "control=True: --control applies to inspections only" in err) == (2, True)


def test_a_masked_model_has_the_measures_that_apply(tmp_path: Path, run: Run) -> None:
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=301, max_position_embeddings=64, **shape)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "masked")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tiny_tokenizer()._tokenizer, pad_token="<pad>", mask_token="[MASK]"
    )
    tokenizer.save_pretrained(tmp_path / "masked")
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat, and the dog ran after the cat. " * 200, encoding="utf-8")
    names = ("copying", "consistency", "decoding")
    words = ("--effort", 0.1, "--out", tmp_path / "found", "--no-control", "--text", text)
    code, out, err = run("inspect", tmp_path / "masked", *words, "--measures", *names)
    assert code == 0
    message = "decoding: not taken: it is of causal models, and this is a masked one"
    assert message in out
    assert message in err
    record = json.loads((tmp_path / "found" / "inspection.json").read_text())
    assert record["kind"] == "masked"
    assert list(record["measures"]) == ["copying", "consistency"]
    assert record["settings"]["text"] is not None
    assert record["measures"]["copying"]["control"] is None
    assert "Not taken" in (tmp_path / "found" / "inspection.html").read_text()


def test_without_a_text_the_other_measures_are_taken(place: Path, tmp_path: Path, run: Run) -> None:
    words = ("--out", tmp_path / "found", "--effort", 0.05)
    code, out, err = run("inspect", place / "model", *words)
    assert code == 0
    record = json.loads((tmp_path / "found" / "inspection.json").read_text())
    assert set(record["measures"]) | set(record["refused"]) == set(MEASURES)
    assert {"copying", "brackets", "decoding"} <= set(record["measures"])
    assert record["refused"]["context"] == "it needs a text: --text FILE"
    assert "interactions: not taken: it needs clones of a text" in out
    assert err.count("context: not taken") == 1
    page = (tmp_path / "found" / "inspection.html").read_text()
    assert page.count("<svg") == sum(
        any(one["along"] for one in measure["checkpoints"][0]["quantities"])
        for measure in record["measures"].values()
    )


def test_damaged_files_are_reported_in_one_line(place: Path, tmp_path: Path, run: Run) -> None:
    shutil.copytree(place / "found", tmp_path / "found")
    path = tmp_path / "found" / "work" / "control" / "copying.json"
    for text in ("{", "[]", "{}", '{"files": ""}'):
        path.write_text(text, encoding="utf-8")
        code, out, err = run("inspect", place / "model", "--out", tmp_path / "found", *QUICK)
        assert (code, out) == (2, ""), text
        assert f"out='{path}': it is damaged: delete it, and it is made anew" in err


class VocabularySize(Measure):
    """A measure of the vocabulary size that does not apply to random weights."""

    question, reading, needs = "How many tokens does it know?", "", "text"

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        return 1

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        if not subject.files:
            raise InputError("model", subject.name, "its weights are random")
        return [number("tokens", Point(float(subject.vocab_size)))]


def test_a_registered_measure_waits_for_its_text(
    place: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEASURES, "mine", VocabularySize)
    shutil.copytree(place / "found", tmp_path / "found")
    words = ("inspect", place / "model", "--out", tmp_path / "found", "--effort", 0.1, "--measures", "mine")
    code, out, _ = run(*words)
    assert code == 0
    assert "mine: not taken: it needs a text" in out
    (tmp_path / "text.txt").write_text("a text", encoding="utf-8")
    code, out, err = run(*words, "--text", tmp_path / "text.txt")
    assert code == 0
    assert "not taken" not in out
    record = json.loads((tmp_path / "found" / "inspection.json").read_text())
    assert list(record["measures"]) == ["copying", "mine"]
    assert record["measures"]["mine"]["checkpoints"][0]["quantities"][0]["points"] == [{"value": 300}]
    assert record["measures"]["mine"]["control"] is None
    code, _, err = run(*words)
    assert code == 2
    assert "text='left out'" in err
    assert run("compare", place / "found", tmp_path / "found")[0] == 0


@pytest.mark.parametrize("measure", ["context", "topics"])
def test_a_short_text_is_refused_before_any_measure(
    measure: str, place: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "text.txt").write_text("too short", encoding="utf-8")
    words = ("--out", tmp_path / "found", "--measures", "copying", measure, "--text", tmp_path / "text.txt")
    code, out, err = run("inspect", place / "model", *words)
    assert (code, out) == (2, "")
    assert "text=" in err.splitlines()[-1]
    assert "give a longer text" in err.splitlines()[-1]
    assert "copying: about" not in err


BAD: list[tuple[str, str]] = [
    ("inspect model --measures coppying", "no such measure: did you mean copying"),
    ("inspect no/such/model", "model='no/such/model'"),
    ("inspect found", "neither a model (config.json) nor checkpoints"),
    ("inspect step-1.safetensors --out new", "it is a network of a training here"),
    ("inspect model --effort 0", "effort=0.0"),
    ("inspect model --threads 0", "threads=0"),
    ("inspect model --workers 0", "workers=0"),
    ("inspect model --executor rya", "executor='rya': no such executor: did you mean ray?"),
    ("inspect model --text missing.txt", "missing.txt"),
    ("inspect model --out found --effort 0.2", "effort=0.2: found has an inspection with 0.1"),
    ("inspect training/checkpoint-5 --out moved --effort 0.1", "measured of other weights"),
    ("compare found/inspection.json", "name two or more"),
    ("compare found/inspection.json model/config.json", "it is no trialogue inspection"),
    ("compare found/inspection.json missing.json", "it cannot be read"),
    ("compare found found --out no/where.html", "there is no folder no"),
    ("compare a b c", "name two results of one study"),
    ("compare found found/inspection.json", "it is named twice"),
    ("compare a b --out page.html", "out='page.html'"),
    ("compare found moved --results results", "results='results'"),
]


def test_invalid_input_is_reported_in_one_line(
    place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    assert not wrong_refusals(BAD, run, alone=False)


def test_only_valid_inspections_with_equal_settings_are_compared(
    place: Path, tmp_path: Path, run: Run
) -> None:
    record = json.loads((place / "found" / "inspection.json").read_text())

    def written(name: str, **changes: object) -> Path:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(record | changes))
        return path

    settings = record["settings"]
    without, one, other = (
        written(f"{text}", settings=settings | {"text": text}) for text in (None, "one", "other")
    )
    assert run("compare", without, one)[0] == 0
    whole = "it is no trialogue inspection of this version"
    cases = [(f"compare {without} {one} {other}", f"text='{other}': {one} was taken with another text")]
    changed = written("effort", settings=settings | {"effort": 2.0})
    cases.append((f"compare {place / 'found'} {changed}", "was taken with another effort"))
    for index, change in enumerate(({"settings": {}}, {"measures": {"copying": {}}}, {"measures": []},
                                     {"refused": None}, {"settings": None})):  # fmt: skip
        cases.append((f"compare {place / 'found'} {written(str(index), **change)}", whole))
    assert not wrong_refusals(cases, run)


def test_curves_are_compared_at_the_common_points() -> None:
    def column(head: str, *places: int) -> Series:
        points = tuple(Point(float(place), at=place) for place in places)
        return Series(head, [Quantity(name="copied", points=points, along="tokens")])

    columns = [column("near", 4, 16), column("far", 4, 16, 64)]
    assert table(columns, every=False)[1] == [("copied, tokens: 16", ["16.0", "16.0"])]
    assert [name for name, _ in table(columns)[1]] == [f"copied, tokens: {place}" for place in (4, 16, 64)]
    assert len(table([column("near", 4), column("far", 64)], every=False)[1]) == 2


def test_a_model_folder_may_be_named_control(tmp_path: Path, run: Run) -> None:
    save_tiny(tmp_path / "control")
    code, _, err = run("inspect", tmp_path / "control", "--out", tmp_path / "found", *QUICK)
    assert code == 0, err
    assert sorted(path.name for path in (tmp_path / "found" / "work").glob("*/")) == [
        "control",
        "model-control",
    ]


def test_an_incomplete_checkpoint_is_reported_before_any_measure(
    place: Path, tmp_path: Path, run: Run
) -> None:
    shutil.copytree(place / "training", tmp_path / "training")
    (tmp_path / "training" / "checkpoint-10" / "config.json").unlink()
    code, _, err = run("inspect", tmp_path / "training", "--out", tmp_path / "found", *QUICK)
    assert code == 2
    assert "checkpoint-10" in err.splitlines()[-1]
    assert "copying" not in err


def test_all_checkpoints_of_a_training_share_one_control(place: Path, tmp_path: Path, run: Run) -> None:
    shutil.copytree(place / "training" / "checkpoint-10", tmp_path / "training" / "checkpoint-10")
    words = ("inspect", tmp_path / "training", "--out", tmp_path / "found", *QUICK)
    assert run(*words)[0] == 0
    shutil.copytree(place / "training" / "checkpoint-5", tmp_path / "training" / "checkpoint-5")
    code, _, err = run(*words)
    assert code == 0, err
    assert "of random weights" not in err


class NoFiniteResult(VocabularySize):
    """A measure without a finite result."""

    needs = None

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        return [number("loss", Point(float("nan")))]


def test_a_measure_without_a_finite_result_is_not_repeated(
    place: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEASURES, "endless", NoFiniteResult)
    (tmp_path / "text.txt").write_text("a text", encoding="utf-8")
    text = ("--text", tmp_path / "text.txt")
    words = ("inspect", place / "model", "--out", tmp_path / "found", *QUICK, *text)
    code, out, _ = run(*words, "--measures", "endless")
    assert code == 0
    assert "endless: not taken: it gives no finite number for 'loss'" in out
    monkeypatch.setattr(NoFiniteResult, "needs", "text")
    code, out, err = run(*words, "--measures", "endless")
    assert code == 0
    assert "loading" not in err


def test_a_random_model_has_the_dtype_of_its_model() -> None:
    model = tiny_model().bfloat16()
    assert Subject(model, tiny_tokenizer(), "causal", name="tiny").control(0).model.dtype == model.dtype


def raising(error: Exception) -> Callable[..., None]:
    def fails(*_: object, **__: object) -> None:
        raise error

    return fails


def test_a_measure_beyond_the_memory_does_not_stop_the_others(
    place: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEASURES, "huge", NoFiniteResult)
    memory = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
    monkeypatch.setattr(NoFiniteResult, "take", raising(RuntimeError(memory)))
    words = ("inspect", place / "model", "--out", tmp_path / "found", "--effort", 0.1)
    code, out, _ = run(*words, "--measures", "huge", "copying")
    assert code == 0
    assert "huge: not taken: memory did not suffice with --effort 0.1: give another folder" in out
    assert "How far back" in out
    monkeypatch.setattr(NoFiniteResult, "take", lambda *_: [number("rows", Point(1.0))])
    code, out, err = run(*words, "--measures", "huge", "copying")
    assert code == 0
    assert "not taken" not in out
    assert "copying: about" not in err
    monkeypatch.setitem(MEASURES, "wrong", NoFiniteResult)
    monkeypatch.setattr(NoFiniteResult, "take", raising(RuntimeError("shapes differ")))
    with pytest.raises(RuntimeError, match="shapes differ"):
        run(*words, "--measures", "wrong")


def test_a_model_beyond_the_memory_is_reported_in_one_line(
    place: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Subject, "load", raising(MemoryError()))
    code, _, err = run("inspect", place / "model", "--out", tmp_path / "found", *QUICK)
    assert code == 2
    assert err.splitlines()[-1].endswith(
        "memory does not suffice to load it: use a smaller --dtype, or another --device"
    )


def test_a_measure_that_cannot_be_imported_does_not_stop_the_others(
    place: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(MEASURES):
        if name != "copying":
            monkeypatch.delitem(MEASURES, name)
    monkeypatch.setitem(MEASURES, "broken", "nowhere_to_be_found:Measure")
    words = ("inspect", place / "model", "--out", tmp_path / "found", "--effort", 0.1)
    code, out, err = run(*words)
    assert code == 0
    assert "nowhere_to_be_found" in err
    assert "How far back" in out
    code, _, err = run(*words, "--measures", "broken")
    assert code == 2


def test_the_control_may_be_added_and_removed(
    place: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("inspect", place / "model", "--out", tmp_path / "found", *QUICK)
    assert run(*words, "--no-control")[0] == 0
    code, _, err = run(*words)
    assert code == 0
    assert "copying: about" not in err
    record = json.loads((tmp_path / "found" / "inspection.json").read_text())
    assert record["measures"]["copying"]["control"]
    assert run(*words, "--no-control")[0] == 0
    record = json.loads((tmp_path / "found" / "inspection.json").read_text())
    assert not record["settings"]["control"]
    assert not record["measures"]["copying"]["control"]


def test_the_folder_is_named_after_the_model(
    place: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(place / "model", tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    assert run("inspect", ".", *QUICK, "--no-control")[0] == 0
    assert (tmp_path / "model" / "inspection-model" / "inspection.html").exists()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latest").symlink_to(tmp_path / "model")
    assert run("inspect", "latest", *QUICK, "--no-control")[0] == 0
    assert (tmp_path / "inspection-latest" / "inspection.html").exists()


def test_a_confidence_band_has_gaps_at_unknown_ends() -> None:
    points = [Point(0.5, 0.4, 0.6, 1), Point(0.4, at=2), Point(0.3, 0.2, 0.4, 4), Point(0.2, 0.1, 0.3, 8)]
    axes = Figure().subplots()
    _curve(axes, points, "-", "k", "a", False)
    [band] = axes.collections
    shown = np.concatenate([path.vertices for path in band.get_paths()])
    assert {0.4, 0.6, 0.2, 0.1} <= {round(float(y), 6) for y in shown[:, 1]}
    _curve(axes, [Point(0.5, at=1)], "-", "k", "b", False)
    assert len(axes.collections) == 1
