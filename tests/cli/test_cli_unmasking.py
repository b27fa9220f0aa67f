"""Unmasking samplers in `trialogue generate` and `trialogue distribution`."""

import json
import shlex

import pytest

from models.test_pretrained_masked import save
from refusals import commands_without_expected_error
from trialogue import exact_distribution
from trialogue.data import Ising
from trialogue.samplers.registered import UNMASKING
from trialogue.samplers.unmasking import (
    Confidence,
    DrawThenSelect,
    Entropy,
    Factor,
    Fixed,
    LeftToRight,
    Margin,
    Ordered,
    Random,
    RandomSizes,
    ReMDM,
    Schedule,
    Threshold,
)

CLIQUE = """--distribution 'ising-clique:{"n": 4, "clique": 3, "coupling": 0.4, "field": 0.1}'"""
NAMED = {
    "random": Ordered(),
    'left-to-right:{"positions": 3, "temperature": 0.5}': Ordered(LeftToRight(), Fixed(3), temperature=0.5),
    'confidence:{"threshold": 0.8, "ties": "random"}': Ordered(Confidence("random"), Threshold(0.8)),
    'confidence:{"factor": 2}': Ordered(Confidence(), Factor(2)),
    'entropy:{"linear": 4, "blocks": 8}': Ordered(Entropy(), Schedule("linear", 4), blocks=8),
    'margin:{"cosine": 4, "top_p": 0.9}': Ordered(Margin(), Schedule("cosine", 4), top_p=0.9),
    'random:{"random": 4}': Ordered(Random(), RandomSizes(4)),
    'draw-then-select:{"positions": 2, "ties": "random"}': DrawThenSelect(Fixed(2), ties="random"),
    'remdm:{"passes": 4, "eta": 0.1}': ReMDM(4, 0.1),
}


@pytest.mark.parametrize("spec", NAMED)
def test_names_and_json_settings_create_samplers(spec):
    assert UNMASKING.build(spec) == NAMED[spec]


def test_distribution_equals_the_python_function(run_command):
    words = ["--sampler", 'unmasking:confidence:{"positions": 2}', "--json"]
    code, out, err = run_command("distribution", *shlex.split(CLIQUE), *words)
    assert code == 0, err
    found = json.loads(out)
    exact = exact_distribution(Ordered(Confidence(), Fixed(2)), Ising.clique(4, 3, 0.4, 0.1))
    assert found["expected_passes"] == exact.expected_passes
    listed = {tuple(one["tokens"]): one["distribution"] for one in found["outputs"]}
    assert listed == pytest.approx(exact.probabilities)
    code, out, err = run_command("distribution", *shlex.split(CLIQUE), *words[:2], "--top", "3")
    assert code == 0, err
    assert "expected passes" in out
    assert out.count("1 1 1 1") == 1


def test_generate_fills_masks_and_continues(tmp_path, run_command):
    folder = str(save(tmp_path / "bert"))
    words = ["--sampler", 'unmasking:confidence:{"positions": 2}', "--model", folder, "--n", "3"]
    prompts = ["--prompt", "the [MASK] [MASK]", "--prompt", "the cat"]
    code, out, err = run_command("generate", *words, *prompts, "--max-new-tokens", "3")
    assert code == 0, err
    records = [json.loads(line) for line in out.splitlines()]
    assert [(one["id"], one["sample"]) for one in records] == [(i, j) for i in (1, 2) for j in range(3)]
    assert {one["passes"] for one in records[:3]} == {3}  # five masks
    assert {one["passes"] for one in records[3:]} == {2}  # three masks
    assert all(one["text"].startswith("the ") and "[MASK]" not in one["text"] for one in records)
    assert all(len(one["text"].split()) == 5 for one in records[3:])
    file = tmp_path / "samples.jsonl"
    again = run_command("generate", *words, *prompts, "--max-new-tokens", "3", "--out", str(file))
    assert again == (0, "", "")
    assert file.read_text() == out


def test_bad_input_has_one_clear_message(tmp_path, run_command):
    folder = save(tmp_path / "bert")
    model = f"--sampler unmasking:random --model {folder}"
    cases = [
        (f"generate {model}", "prompt=None: use --prompt TEXT"),
        (f"generate {model} --prompt 'the cat'", "use --max-new-tokens N, or write the mask token"),
        (f"generate {model} --prompt the --max-new-tokens 30", "has 12 positions"),
        (f"generate {model} --prompt the --regex=a+", "option='--regex': constraints mask the next token"),
        (f"generate {model} --prompt the --json-schema x", "trialogue.samplers.unmasking.Checked"),
        (f"generate {model} --prompt the --top-k 3", "no such option with an unmasking sampler"),
        ("generate --sampler unmasking:random --prompt the", "model=None: use a masked model"),
        (f"generate --sampler unmasking:rndom --model {folder} --prompt the", "did you mean random"),
        ("distribution --sampler unmasking:random", "distribution=None: use a masked distribution"),
        (
            """distribution --sampler unmasking:random --distribution 'dyck:{"length": 4}'""",
            "use a distribution of whole sequences",
        ),
        (
            f"""distribution {CLIQUE} --sampler 'unmasking:random:{{"positions": 2, "cosine": 2}}'""",
            "cosine=2: leave it out, because positions defines the size",
        ),
        (
            f"""distribution {CLIQUE} --sampler 'unmasking:random:{{"threshold": 0.9}}'""",
            "use the order Confidence",
        ),
        (f"distribution {CLIQUE} --sampler unmasking:random --max-states 3", "max_states=3"),
    ]
    assert commands_without_expected_error(cases, run_command) == []
