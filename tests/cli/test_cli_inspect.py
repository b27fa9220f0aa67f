"""`trialogue inspect` and `trialogue compare`: pages, files, resumption and errors for invalid input."""

import json
import math
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers
from matplotlib.figure import Figure

from models.tiny_pretrained import save_tiny, tiny_model, tiny_tokenizer
from refusals import commands_without_expected_error
from trialogue import cli
from trialogue.errors import InputError
from trialogue.inspection.conclusions import describe_change, describe_conclusion
from trialogue.inspection.measures.copying import Copying
from trialogue.inspection.measures.measure import CONTROL_MODELS, MEASURES, Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Point, Quantity, single_quantity
from trialogue.inspection.page import make_table
from trialogue.inspection.picture import Series, _curve, curve_figures
from trialogue.inspection.subject import Subject
from trialogue.models import Transformer, TransformerConfig, save_gpt2
from trialogue.models.hub.load_errors import explain_load_error
from trialogue.models.hub.random_weights import with_random_weights
from trialogue.randomness import derive_seed


class Inspection(NamedTuple):
    """The result of `trialogue inspect`."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def record(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads((self.folder / "inspection.json").read_text())
        return parsed

    @property
    def page(self) -> str:
        return (self.folder / "inspection.html").read_text()


Inspect = Callable[..., Inspection]


@pytest.fixture
def inspect(run_command, tmp_path):
    """Inspect a subject into the folder `found`, by default with one quick measure."""

    def run_inspect(
        subject: Path,
        *words: object,
        measures: Sequence[str] = ("copying",),
        effort: float = 0.1,
        code: int = 0,
    ) -> Inspection:
        options = ("--out", tmp_path / "found", "--effort", effort, "--measures", *measures)
        result = run_command("inspect", subject, *(options if measures else options[:-1]), *words)
        assert result[0] == code, result[2]
        return Inspection(*result, tmp_path / "found")

    return run_inspect


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Return a folder with a model, two training checkpoints and an inspection of the model."""
    folder = tmp_path_factory.mktemp("inspect")
    save_tiny(folder / "model")
    for step in (5, 10):
        save_tiny(folder / "training" / f"checkpoint-{step}", seed=step)
    options = ["--out", str(folder / "found"), "--measures", "copying", "--effort", "0.1"]
    assert cli.main(["inspect", str(folder / "model"), *options]) == 0
    shutil.copytree(folder / "found", folder / "moved")
    (folder / "moved" / "work" / "model-model").rename(folder / "moved" / "work" / "model-checkpoint-5")
    return folder


@pytest.fixture
def model(workspace):
    return workspace / "model"


@pytest.fixture
def found(workspace, tmp_path):
    """Return a copy of the inspection of the model, in the folder used by `inspect`."""
    return Path(shutil.copytree(workspace / "found", tmp_path / "found"))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a text", encoding="utf-8")
    return path


def raising(error: Exception) -> Callable[..., None]:
    def fails(*_: object, **__: object) -> None:
        raise error

    return fails


def test_an_inspection_writes_a_page_and_a_file(workspace):
    inspection = Inspection(0, "", "", workspace / "found")
    measure = inspection.record["measures"]["copying"]
    [checkpoint] = measure["checkpoints"]
    assert inspection.record["kind"] == "causal"
    assert checkpoint["files"].startswith("sha256 ")
    names = [one["name"] for one in checkpoint["quantities"]]
    assert names[:2] == ["copied, mean over distances 4 to 64", "copied"]
    assert len(measure["control"]) == len(names)
    for part in ("<svg", "random weights", "color-scheme", "<details><summary>All points</summary>"):
        assert part in inspection.page
    assert not re.search(r'(src|href)="http', inspection.page.replace('xlink:href="http', ""))


def test_finished_measures_are_not_repeated(workspace, model, found, inspect, monkeypatch):
    (found / "work" / "control" / "copying.json").unlink()
    again = inspect(model)
    assert "copying of random weights: about" in again.err
    assert "copying: about" not in again.err
    for name in ("inspection.json", "inspection.html"):
        assert (found / name).read_bytes() == (workspace / "found" / name).read_bytes()
    monkeypatch.setattr(Copying, "take", raising(AssertionError()))
    assert "loading" not in inspect(model).err
    # Further measures are added to the existing ones.
    more = inspect(model, measures=["decoding"])
    assert "copying: about" not in more.err
    assert re.search(r"decoding: about [\d,]+ tokens, \d+ s", more.err)
    assert list(more.record["measures"]) == ["copying", "decoding"]
    assert "top-p 0.9" in more.out


def test_the_checkpoints_of_a_training_are_inspected(workspace, inspect, run_command):
    def steps(inspection: Inspection) -> list[int]:
        return [one["step"] for one in inspection.record["measures"]["copying"]["checkpoints"]]

    first = inspect(workspace / "training")
    assert first.err.count("copying of random weights: about") == 1
    assert "step 10" in first.out
    assert "copying: From step 5 to step 10, “copied, mean over" in first.out
    assert "A number rose or fell if" in first.out
    assert first.page.count(">step 5</th>") >= 2
    compared = run_command("compare", first.folder, workspace / "found")[1]
    assert "copying: training: From step 5 to step 10, “copied, mean over" in compared
    assert "copying: From training, step 10 to model, “copied, mean over" in compared
    assert steps(first) == [5, 10]
    assert 'id="copying-steps-' in first.page
    assert "step 5" in first.page
    file = first.folder / "work" / "step-10" / "copying.json"
    refused = json.loads(file.read_text()) | {"refused": "it gives no finite number", "lacks": None}
    for key in ("quantities", "tokens", "seconds"):
        del refused[key]
    file.write_text(json.dumps(refused))
    again = inspect(workspace / "training")
    assert steps(again) == [5]
    assert again.record["refused"] == {"copying of step-10": "it gives no finite number"}
    assert "copying of step-10" in again.page


def test_a_failed_start_does_not_fix_the_settings(model, inspect):
    assert "dtype='int3': use auto" in inspect(model, "--dtype", "int3", code=2).err
    assert "executor=" in inspect(model, "--executor", "ray://head", effort=7, code=2).err
    inspect(model)
    # An unknown type is reported as unknown, not as a changed setting.
    assert "dtype='int3': use auto" in inspect(model, "--dtype", "int3", code=2).err


def test_inspections_are_compared(workspace, tmp_path, inspect, run_command):
    inspect(workspace / "training" / "checkpoint-5")
    words = (workspace / "found" / "inspection.json", tmp_path / "found", "--out", tmp_path / "both.html")
    code, out, _ = run_command("compare", *words)
    assert code == 0
    assert "occurrence: 64" in " ".join(out.split())
    assert "checkpoint-5" in " ".join(out.split())
    page = (tmp_path / "both.html").read_text()
    assert "checkpoint-5" in page
    for shown in (" ".join(out.split()), page):
        assert "From model to checkpoint-5, “copied, mean" in shown
        assert "A perfect model has 1." in shown
    assert "copied, tokens since the first occurrence: 16" in page
    assert "random weights" not in page
    code, out, _ = run_command("compare", *words, "--control")
    assert (code, "random weights" in " ".join(out.split())) == (0, True)
    assert (tmp_path / "both.html").read_text().count(", random weights</th>") == 4  # In two tables.
    code, _, err = run_command("compare", "biased-coin", "biased-coin", "--control")
    assert (code, "control=True: --control applies to inspections only" in err) == (2, True)


def test_a_masked_model_has_all_applicable_measures(tmp_path, text, inspect, run_command):
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=301, max_position_embeddings=64, **shape)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "masked")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tiny_tokenizer()._tokenizer, pad_token="<pad>", mask_token="[MASK]"
    )
    tokenizer.save_pretrained(tmp_path / "masked")
    text.write_text("the cat sat on the mat, and the dog ran after the cat. " * 200, encoding="utf-8")
    names = ("copying", "consistency", "orders", "decoding")
    result = inspect(tmp_path / "masked", "--no-control", "--text", text, measures=names)
    message = "decoding: skipped: it applies to causal models, but this is a masked model"
    assert message in result.out
    assert message in result.err
    record = result.record
    assert record["kind"] == "masked"
    assert list(record["measures"]) == ["copying", "consistency", "orders"]
    assert " ".join(Copying.reading.split()) in " ".join(result.out.split())
    assert "confidence interval" in result.out
    assert "Random weights are" not in result.out
    [*_, command] = re.findall(r"^  trialogue (generate --model .*)", result.out, re.MULTILINE)
    code, out, err = run_command(*shlex.split(command))
    assert code == 0, err
    assert json.loads(out)["passes"] == 1
    assert record["settings"]["text"] is not None
    assert record["measures"]["copying"]["control"] is None
    assert "decoding: skipped: " in result.page


def test_measures_without_text_run_if_no_text_is_given(model, inspect):
    result = inspect(model, "--no-control", measures=(), effort=0.05)
    record = result.record
    assert set(record["measures"]) | set(record["refused"]) == set(MEASURES)
    assert {"copying", "brackets", "decoding"} <= set(record["measures"])
    assert record["refused"]["context"] == "it needs a text. Use --text FILE"
    assert "interactions: skipped: it needs clones of a text" in result.out
    assert result.err.count("context: skipped") == 1
    assert result.page.count("<svg") >= sum(
        any(one["along"] for one in measure["checkpoints"][0]["quantities"])
        for measure in record["measures"].values()
    )


def test_a_measure_that_does_not_apply_to_the_tokenizer_is_skipped(tmp_path, inspect):
    network = Transformer(TransformerConfig(vocab_size=4, max_length=64, width=8, mlp_width=16))
    result = inspect(save_gpt2(network, "()«»", tmp_path / "network"), measures=("patterns", "copying"))
    assert list(result.record["measures"]) == ["copying"]
    assert "patterns: skipped: its decoder (Fuse) does not define the bytes of a token" in result.out


def test_a_measure_with_too_little_text_is_skipped(model, inspect, tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("a few words", encoding="utf-8")
    result = inspect(model, "--text", short, measures=("copying", "context"))
    assert list(result.record["measures"]) == ["copying"]
    assert "context: skipped: text=1 document: they contain 0 passages" in result.page
    shutil.rmtree(tmp_path / "found")
    result = inspect(model, "--text", short, measures=("context",), code=2)
    assert "they contain 0 passages" in result.err


@pytest.mark.parametrize(
    ("model", "control", "words"),
    [
        (
            (0.5, 0.4, 0.6),
            (0.1, 0.0, 0.2),
            "It copies a share of 0.500 [0.400, 0.600] (random weights: 0.100 [0, 0.200]). "
            "The model has learned to copy.",
        ),
        ((0.1, 0.0, 0.2), (0.5, 0.4, 0.6), "The model does not copy."),
        ((0.5, 0.4, 0.6), (0.1, 0.0, 0.4), "The intervals overlap, so this run does not show a difference."),
        ((0.5, None, None), (0.1, 0.0, 0.4), "Without intervals, chance is not excluded."),
        ((0.5, 0.4, 0.6), None, "It was not compared with random weights."),
    ],
)
def test_a_conclusion_needs_disjoint_intervals(model, control, words):
    def series(*point):
        copied = single_quantity("copied", Point(*point), exact=1.0, finding="It copies a share of {}")
        return Series("x", [single_quantity("other", Point(0.0)), copied])

    assert words in describe_conclusion("copying", series(*model), series(*control) if control else None)


@pytest.mark.parametrize(
    ("control", "words"),
    [
        (
            (0.3, 0.1, 0.3),
            "at 16 and 64 tokens (most at 64 tokens: 0.800 [0.600, 0.900]), but not measurably at 4.",
        ),
        ((0.3, 0.0, 1.0), "it copies better than random weights, because the intervals overlap there."),
        (
            (0.6, 0.5, 0.7),
            "At no single distance does this run show that it copies better than random weights.",
        ),
        ((0.6, None, None), "Without intervals, chance is not excluded."),
        (
            (0.55, 0.5, 0.58),
            "at 64 tokens (0.800 [0.600, 0.900]), but not measurably at 4 and 16.",
        ),
        ((0.0, 0.0, 0.0), "at 4, 16 and 64 tokens (most at 64 tokens: 0.800 [0.600, 0.900])."),
    ],
)
def test_copying_names_the_distances_at_which_the_model_is_better(control, words):
    def series(*shares):
        curve = Quantity(name="copied", points=shares, along="tokens")
        return Series("x", [single_quantity("mean", Point(0.45), finding="It copies {}"), curve])

    model = series(Point(0.2, 0.1, 0.3, 4), Point(0.5, 0.4, 0.6, 16), Point(0.8, 0.6, 0.9, 64))
    random = series(*(Point(*control, at) for at in (4, 16, 64)))
    assert describe_conclusion("copying", model, random).endswith(words)


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ((0.1, 0.0, 0.2), "fell from 1 [0.900, 1.10] to 0.100 [0, 0.200] nats per bracket."),
        ((1.2, 1.0, 1.4), "changed"),
    ],
)
def test_the_change_of_brackets_states_the_excess_loss(last, words):
    def series(name, loss):
        curve = Quantity(
            name="excess loss", points=(Point(9.0, at=1), Point(*loss, 32)), along="brackets read"
        )
        return Series(name, [single_quantity("correct", Point(0.5, 0.4, 0.6), finding="It closes {}"), curve])

    change = describe_change("brackets", [series("a", (1.0, 0.9, 1.1)), series("b", last)])
    assert "The excess loss over a perfect model, after 32 or more brackets, " in change
    assert words in change
    assert ("The intervals overlap." in change) == (words == "changed")


def test_figures_of_quantities_with_equal_names_have_different_titles():
    curves = [
        Quantity(name="copied", points=(Point(0.5, at=1),), along=along, exact=1.0)
        for along in ("length", "depth")
    ]
    panels = [draw().axes[0] for draw in curve_figures([Series("model", curves)], logarithmic=False)]
    assert [panel.get_title() for panel in panels] == ["copied, by length", "copied, by depth"]
    assert panels[0].get_ylim()[1] >= 1  # The axis includes the value of a perfect model.


@pytest.mark.parametrize(
    ("numbers", "sentences"),
    [
        (
            [(0.1, 0.0, 0.2), (0.2, 0.1, 0.3), (0.5, 0.4, 0.6), (0.6, 0.5, 0.7)],
            "From step 0 to step 3, “copied” rose from 0.100 [0, 0.200] to 0.600 [0.500, 0.700]. "
            "The change is visible from step 2 on.",
        ),
        (
            [(0.6, 0.5, 0.7), (0.1, 0.0, 0.2), (0.55, 0.45, 0.65), (0.3, 0.25, 0.4)],
            "From step 0 to step 3, “copied” fell from 0.600 [0.500, 0.700] to 0.300 [0.250, 0.400]. "
            "The change is visible from step 3 on. In between, it was lower: 0.100 [0, 0.200] (step 1).",
        ),
        (
            [(0.1, 0.0, 0.2), (0.5, 0.4, 0.6), (0.2, 0.1, 0.3)],
            "From step 0 to step 2, “copied” shows no change, because the intervals overlap (from 0.100 [0, 0.200] to "
            "0.200 [0.100, 0.300]). In between, it was higher: 0.500 [0.400, 0.600] (step 1).",
        ),
        (
            [(1.0, None, None), (3.0, None, None)],
            "From step 0 to step 1, “copied” changed from 1 to 3. Without intervals, chance is not excluded.",
        ),
        # A number below 1e-6 is a rounding error.
        (
            [(1e-8, 0.0, 1e-7), (0.1, 0.0, 0.2)],
            "From step 0 to step 1, “copied” shows no change, because the intervals overlap (from 0 [0, 0] to 0.100 "
            "[0, 0.200]).",
        ),
        ([(1.0, None, None)] * 2, "From step 0 to step 1, “copied” stayed at 1."),
        ([(1.0, None, None)], ""),
    ],
)
def test_a_change_needs_disjoint_intervals(numbers, sentences):
    series = [
        Series(
            f"step {step}",
            [single_quantity("other", Point(0.0)), single_quantity("copied", point, finding="{}")],
        )
        for step, point in enumerate(Point(*number) for number in numbers)
    ]
    assert describe_change("copying", series, is_training=True) == sentences


@pytest.mark.parametrize(
    ("ratio", "control", "end"),
    [
        ((1.2, 1.1, 1.3), None, "are related."),
        (
            (1.0, 0.9, 1.1),
            None,
            "The interval contains 1, so this run does not show that the model relates these words.",
        ),
        ((0.8, 0.7, 0.9), None, "are less similar."),
        ((1.2, 1.1, 1.3), (1.0, 0.9, 1.05), "The difference is unlikely to be chance."),
    ],
)
def test_the_ratio_of_topics_is_compared_with_one_without_a_control(ratio, control, end):
    def series(numbers):
        return Series(
            "x", [single_quantity("ratio", Point(*numbers), finding="They are {} times as similar")]
        )

    random_weights = series(control) if control else Series("random weights", [])
    assert describe_conclusion("topics", series(ratio), random_weights).endswith(end)


def test_different_quantities_are_not_compared():
    series = [named(**{f"gained_by_{length}_tokens": Point(1.0, 0.9, 1.1)}) for length in (64, 128)]
    assert describe_change("context", series).endswith(
        "were measured: gained by 64 tokens; gained by 128 tokens."
    )


def named(**numbers: Point | list[Point]) -> Series:
    """Return a series of quantities, with underscores in their names instead of spaces."""
    quantities = []
    for name, points in numbers.items():
        along = "position" if isinstance(points, list) else ""
        points = tuple(points) if isinstance(points, list) else (points,)
        quantities.append(
            Quantity(name=name.replace("_", " "), points=points, along=along, unit="nats per token")
        )
    return Series("x", quantities)


def test_context_is_concluded_from_the_gain_in_loss():
    def series(gain: Point) -> Series:
        return named(context_that_matters=Point(8.0, 1.0, 8.0), gained_by_128_tokens_of_context=gain)

    control = series(Point(-0.04, -0.1, 0.02))
    sentence = describe_conclusion("context", series(Point(3.5, 2.7, 4.3)), control)
    assert sentence == (
        "With 128 tokens of context, the model loses 3.50 [2.70, 4.30] nats less per token than with one token "
        "(random weights: -0.0400 [-0.100, 0.0200]). The model has learned to use context. About 8 [1, 8] tokens of "
        "context are enough for most of this gain."
    )
    assert "does not show a gain" in describe_conclusion("context", series(Point(0.3, -0.1, 0.7)), control)
    overlap = describe_conclusion("context", series(Point(0.1, 0.01, 0.3)), control)
    assert "does not show a difference" in overlap
    assert "enough" not in overlap
    assert "enough" in describe_conclusion("context", series(Point(3.5, 2.7, 4.3)), None)


def test_an_order_equal_to_random_weights_shows_nothing():
    def series(order: float, low: float) -> Series:
        excess = Point(low + 0.1, low, low + 0.2)
        return named(pairs_over_the_text=excess, learned_beyond_order=Point(order))

    def conclude(model: Series, control: Series | None) -> str:
        return describe_conclusion("interactions", model, control)

    same = "Random weights give the same result, so this run shows nothing."
    assert conclude(series(3.0, 0.3), series(3.0, 0.3)) == same
    learned = conclude(series(3.0, 4.0), series(3.0, 0.3))
    assert "pairs, the loss of the model is 4.10 [4, 4.20] nats per token higher" in learned
    assert learned.endswith("The order, 3, is the same for random weights, so it shows nothing.")
    assert conclude(series(3.0, 4.0), series(0.0, -0.1)).endswith("beyond order 3 (random weights: 0).")
    assert "does not show a difference" in conclude(series(3.0, 0.3), series(0.0, 0.2))
    assert conclude(series(0.0, 0.0), None).startswith("The loss of the model is not clearly higher")


def test_decoding_is_not_compared_with_random_weights():
    model = named(**{"one_token,_temperature_0.7": Point(0.1, 0.0, 0.2)}).quantities
    texts = named(
        **{"text,_temperature_0.7": [Point(0.1, 0.0, 0.2, 1), Point(0.68, 0.5, 0.8, 32)]}
    ).quantities
    series = Series("x", [*model, *texts])
    assert describe_conclusion("decoding", series, series) == (
        "At temperature 0.7, texts of 32 tokens differ from those at temperature 1 by a total variation of "
        "0.680 [0.500, 0.800]. It is 0 for equal distributions and 1 for distributions without a common text. If texts "
        "must follow the distribution of the model, sample at temperature 1."
    )


def test_consistency_is_compared_with_the_information_of_a_token():
    difference = single_quantity(
        "orders differ", Point(0.5, 0.4, 0.6), finding="The two orders differ by {} nats"
    )
    information = single_quantity("information of one token about the other", Point(2.0, 1.0, 3.0))
    series = Series("x", [difference, information])
    assert describe_conclusion("consistency", series, series).startswith(
        "The two orders differ by 0.500 [0.400, 0.600] nats (random weights: 0.500 [0.400, 0.600]). "
        "One token has 2 [1, 3] nats of information about the other."
    )


def test_patterns_say_nothing_if_random_weights_stay_in_the_pattern():
    def series(rate: Point, share: float) -> Series:
        return named(leaves_the_pattern=rate, still_in_the_pattern=[Point(share, None, None, 16)])

    model = series(Point(0.02, 0.01, 0.04), 1.0)
    overlap = describe_conclusion("patterns", model, series(Point(0.04, 0.03, 0.05), 1.0))
    assert "probability of 0.0200 [0.0100, 0.0400] at each byte, on average after 50 bytes" in overlap
    assert "Random weights are still in the pattern after 16 bytes, so this run says nothing" in overlap
    shorter = describe_conclusion("patterns", model, series(Point(0.04, 0.03, 0.05), 0.5))
    assert "does not show a difference" in shorter
    learned = describe_conclusion("patterns", model, series(Point(0.09, 0.08, 0.1), 1.0))
    assert learned.endswith("The model has learned to continue the text.")


def test_damaged_files_are_reported_in_one_line(model, found, inspect):
    path = found / "work" / "control" / "copying.json"
    for content in ("{", "[]", "{}", '{"files": ""}'):
        path.write_text(content, encoding="utf-8")
        result = inspect(model, code=2)
        assert result.out == "", content
        assert f"out='{path}': the file is damaged. Delete it and run the command again" in result.err


class VocabularySize(Measure):
    """A measure of the vocabulary size that does not apply to random weights."""

    question, reading, needs = "How many tokens does it know?", "", "text"

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        return 1

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        if not subject.files:
            raise InputError("model", subject.name, "its weights are random")
        return [single_quantity("tokens", Point(float(subject.vocab_size)))]


def test_a_registered_measure_waits_for_its_text(
    workspace, model, found, text, inspect, run_command, monkeypatch
):
    monkeypatch.setitem(MEASURES, "mine", VocabularySize)
    assert "mine: skipped: it needs a text" in inspect(model, measures=["mine"]).out
    result = inspect(model, "--text", text, measures=["mine"])
    assert "skipped" not in result.out
    assert "<code>text.txt</code>" in result.page
    assert list(result.record["measures"]) == ["copying", "mine"]
    mine = result.record["measures"]["mine"]
    assert mine["checkpoints"][0]["quantities"][0]["points"] == [{"value": 300}]
    assert mine["control"] is None
    assert "text='not given'" in inspect(model, measures=["mine"], code=2).err
    assert run_command("compare", workspace / "found", found)[0] == 0


@pytest.mark.parametrize("measure", ["context", "topics"])
def test_a_short_text_is_rejected_if_no_measure_remains(measure, model, text, inspect):
    result = inspect(model, "--text", text, measures=[measure], code=2)
    assert result.out == ""
    assert "text=" in result.err.splitlines()[-1]
    assert "give a longer text" in result.err.splitlines()[-1]


BAD: list[tuple[str, str]] = [
    ("inspect model --measures copyying", "no such measure: did you mean copying"),
    ("inspect no/such/model", "model='no/such/model'"),
    ("inspect found", "neither a model (config.json) nor checkpoints"),
    ("inspect step-1.safetensors --out new", "Save it with `trialogue.models.save_gpt2`"),
    ("inspect model --effort 0", "effort=0.0"),
    ("inspect model --threads 0", "threads=0"),
    ("inspect model --workers 0", "workers=0"),
    ("inspect model --executor rya", "executor='rya': no such executor: did you mean ray?"),
    ("inspect model --text missing.txt", "missing.txt"),
    ("inspect model --out found --effort 0.2", "effort=0.2: the inspection in found used 0.1"),
    ("inspect training/checkpoint-5 --out moved --effort 0.1", "measured with other weights"),
    ("compare found/inspection.json", "give two or more"),
    ("compare found/inspection.json model/config.json", "the file is not a trialogue inspection"),
    ("compare found/inspection.json missing.json", "the file cannot be read"),
    ("compare found found --out no/where.html", "there is no folder no"),
    ("compare a b c", "use exactly two results of one study"),
    ("compare found found/inspection.json", "it is given twice"),
    ("compare a b --out page.html", "out='page.html'"),
    ("compare found moved --results results", "results='results'"),
]


def test_a_missing_checkpoint_in_an_existing_folder_is_not_an_error_of_the_hub(workspace, monkeypatch):
    monkeypatch.chdir(workspace)
    error = ConnectionError("Temporary failure in name resolution")
    assert explain_load_error(error, "training/checkpoint-999") == "there is no such folder in training"
    assert "hub cannot be reached" in explain_load_error(error, "organization/model")


def test_invalid_input_is_reported_in_one_line(workspace, run_command, monkeypatch):
    monkeypatch.chdir(workspace)
    assert not commands_without_expected_error(BAD, run_command, alone=False)


def test_only_valid_inspections_with_equal_settings_are_compared(workspace, tmp_path, run_command):
    record = json.loads((workspace / "found" / "inspection.json").read_text())
    settings = record["settings"]

    def written(name: str, **changes: object) -> Path:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(record | changes))
        return path

    without, one, other = (
        written(f"{text}", settings=settings | {"text": text}) for text in (None, "one", "other")
    )
    assert run_command("compare", without, one)[0] == 0
    effort = written("effort", settings=settings | {"effort": 2.0})
    cases = [
        (f"compare {without} {one} {other}", f"text='{other}': {one} has a different text"),
        (f"compare {workspace / 'found'} {effort}", "has a different effort"),
    ]
    damaged = [
        ("settings", {}),
        ("measures", {"copying": {}}),
        ("measures", []),
        ("refused", None),
        ("settings", None),
    ]
    for index, (field, value) in enumerate(damaged):
        path = written(str(index), **{field: value})
        cases.append(
            (
                f"compare {workspace / 'found'} {path}",
                "the file is not a trialogue inspection of this version",
            )
        )
    assert not commands_without_expected_error(cases, run_command)


def test_curves_are_compared_at_the_common_points():
    def column(head: str, *positions: int) -> Series:
        points = tuple(Point(float(position), at=position) for position in positions)
        return Series(head, [Quantity(name="copied", points=points, along="tokens")])

    columns = [column("near", 4, 16), column("far", 4, 16, 64)]
    assert make_table(columns, every=False)[1] == [("copied, tokens: 16", ["16", "16"])]
    assert [name for name, _ in make_table(columns)[1]] == [
        f"copied, tokens: {tokens}" for tokens in (4, 16, 64)
    ]
    assert len(make_table([column("near", 4), column("far", 64)], every=False)[1]) == 2


def test_a_model_folder_may_be_named_control(tmp_path, inspect):
    save_tiny(tmp_path / "control")
    work = inspect(tmp_path / "control").folder / "work"
    assert sorted(path.name for path in work.glob("*/")) == ["control", "model-control"]


def test_an_incomplete_checkpoint_is_reported_before_any_measure(workspace, tmp_path, inspect):
    shutil.copytree(workspace / "training", tmp_path / "training")
    (tmp_path / "training" / "checkpoint-10" / "config.json").unlink()
    err = inspect(tmp_path / "training", code=2).err
    assert "checkpoint-10" in err.splitlines()[-1]
    assert "copying" not in err


def test_all_checkpoints_of_a_training_share_one_control(workspace, tmp_path, inspect):
    for name in ("checkpoint-10", "checkpoint-5"):
        shutil.copytree(workspace / "training" / name, tmp_path / "training" / name)
        result = inspect(tmp_path / "training")
    assert "of random weights" not in result.err


class NoFiniteResult(VocabularySize):
    """A measure without a finite result."""

    needs = None

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        return [single_quantity("loss", Point(float("nan")))]


def test_a_measure_without_a_finite_result_is_not_repeated(model, text, inspect, monkeypatch):
    monkeypatch.setitem(MEASURES, "endless", NoFiniteResult)
    out = inspect(model, "--text", text, measures=["endless"]).out
    assert "endless: skipped: 'loss' is not finite for this model" in out
    monkeypatch.setattr(NoFiniteResult, "needs", "text")
    assert "loading" not in inspect(model, "--text", text, measures=["endless"]).err


class BracketPreference(Measure):
    """Measure of a property that differs between untrained models and has a very short interval."""

    question, reading = "Does it prefer one token?", ""

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        return 1

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        first, second = subject.logits(torch.tensor([[5]]))[0, 0, :2].tolist()
        share = 1 / (1 + math.exp(10 * (second - first)))
        return [single_quantity("share", Point(share, share - 1e-6, share + 1e-6), exact=1.0)]


def test_an_untrained_model_has_not_learned_because_the_control_has_many_models(
    tmp_path, inspect, monkeypatch
):
    monkeypatch.setitem(MEASURES, "preference", BracketPreference)
    subject = Subject(with_random_weights(tiny_model(), 8), tiny_tokenizer(), "causal", name="untrained")
    controls = [subject.control(derive_seed(0, number)) for number in range(CONTROL_MODELS)]
    shares = [
        BracketPreference().take(one, Material(), Effort(), print)[0].points[0].value for one in controls
    ]
    ends = {
        "untrained": "so this run does not show a difference",
        "trained": "is better than random weights.",
    }
    for name, conclusion in ends.items():
        if name == "trained":
            hidden = subject.model.model(torch.tensor([[5]])).last_hidden_state[0, 0]
            subject.model.lm_head.weight.data[0] = hidden
        subject.model.save_pretrained(tmp_path / name)
        tiny_tokenizer().save_pretrained(tmp_path / name)
        result = inspect(tmp_path / name, "--out", tmp_path / f"{name}-found", measures=["preference"])
        assert conclusion in result.out, name
    [control] = json.loads((tmp_path / "trained-found" / "inspection.json").read_text())["measures"][
        "preference"
    ]["control"][0]["points"]
    wanted = {"value": np.median(shares), "low": min(shares) - 1e-6, "high": max(shares) + 1e-6}
    assert control == pytest.approx(wanted)


def test_a_random_model_has_the_dtype_of_its_model():
    model = tiny_model().bfloat16()
    assert Subject(model, tiny_tokenizer(), "causal", name="tiny").control(0).model.dtype == model.dtype


def test_a_measure_that_exceeds_memory_does_not_stop_the_others(model, inspect, monkeypatch):
    monkeypatch.setitem(MEASURES, "huge", NoFiniteResult)
    memory = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
    monkeypatch.setattr(NoFiniteResult, "take", raising(RuntimeError(memory)))
    out = inspect(model, measures=["huge", "copying"]).out
    assert "huge: skipped: memory is insufficient for --effort 0.1. Use a smaller effort" in out
    assert "Up to which distance" in out
    monkeypatch.setattr(NoFiniteResult, "take", lambda *_: [single_quantity("rows", Point(1.0))])
    again = inspect(model, measures=["huge", "copying"])
    assert "skipped" not in again.out
    assert "copying: about" not in again.err
    monkeypatch.setattr(NoFiniteResult, "take", raising(RuntimeError("shapes differ")))
    monkeypatch.setitem(MEASURES, "wrong", NoFiniteResult)
    with pytest.raises(RuntimeError, match="shapes differ"):
        inspect(model, measures=["wrong"])


def test_a_model_larger_than_memory_is_reported_in_one_line(model, inspect, monkeypatch):
    monkeypatch.setattr(Subject, "load", raising(MemoryError()))
    message = "memory is insufficient to load the model. Use a smaller --dtype or another --device"
    assert inspect(model, code=2).err.splitlines()[-1].endswith(message)


def test_a_measure_that_cannot_be_imported_does_not_stop_the_others(model, inspect, monkeypatch):
    for name in list(MEASURES):
        if name != "copying":
            monkeypatch.delitem(MEASURES, name)
    monkeypatch.setitem(MEASURES, "broken", "nowhere_to_be_found:Measure")
    result = inspect(model, measures=())
    assert "nowhere_to_be_found" in result.err
    assert "Up to which distance" in result.out
    inspect(model, measures=["broken"], code=2)


def test_the_control_may_be_added_and_removed(model, inspect):
    inspect(model, "--no-control")
    added = inspect(model)
    assert "copying: about" not in added.err
    assert added.record["measures"]["copying"]["control"]
    removed = inspect(model, "--no-control").record
    assert not removed["settings"]["control"]
    assert not removed["measures"]["copying"]["control"]


def test_the_folder_is_named_after_the_model(model, tmp_path, run_command, monkeypatch):
    options = ("--measures", "copying", "--effort", 0.1, "--no-control")
    shutil.copytree(model, tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    assert run_command("inspect", ".", *options)[0] == 0
    assert (tmp_path / "model" / "inspection-model" / "inspection.html").exists()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latest").symlink_to(tmp_path / "model")
    assert run_command("inspect", "latest", *options)[0] == 0
    assert (tmp_path / "inspection-latest" / "inspection.html").exists()


def test_a_confidence_band_has_gaps_at_unknown_ends():
    points = [Point(0.5, 0.4, 0.6, 1), Point(0.4, at=2), Point(0.3, 0.2, 0.4, 4), Point(0.2, 0.1, 0.3, 8)]
    axes = Figure().subplots()
    _curve(axes, points, "k")
    [band] = axes.collections
    shown = np.concatenate([path.vertices for path in band.get_paths()])
    assert {0.4, 0.6, 0.2, 0.1} <= {round(float(y), 6) for y in shown[:, 1]}
    _curve(axes, [Point(0.5, at=1)], "k")
    assert len(axes.collections) == 1
