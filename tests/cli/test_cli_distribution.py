"""`trialogue distribution`: exact distributions on the command line, and errors for invalid input."""

import json
import math
import shlex
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.tiny_pretrained import save_tiny
from refusals import commands_without_expected_error
from trialogue.data import Dyck, Table
from trialogue.samplers import MaskedDecoding
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation

TABLE = {
    "tokens": ["a", "b", "c", "."],
    "eos": ".",
    "distribution": {
        "": {"a": 0.6, "b": 0.3, "c": 0.1},
        "a": {"a": 0.1, "b": 0.2, "c": 0.6, ".": 0.1},
        "a b": {"c": 0.9, ".": 0.1},
    },
    "otherwise": [0.25, 0.25, 0.25, 0.25],
}
RULE = "regex:a(b|bb)?c?|b[ac]*|cab"
WORDS = {"a", "ab", "abb", "ac", "abc", "abbc", "cab"}
MASKED = "--sampler masked-decoding"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path, monkeypatch, run_command):
    """Run the command in a folder with a table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    Path("table.json").write_text(json.dumps(TABLE))
    return lambda *words: run_command("distribution", *shlex.split(" ".join(words)))


def record(run: Run, words: str) -> dict[str, Any]:
    code, out, err = run(f"{words} --json")
    assert code == 0, err
    parsed: dict[str, Any] = json.loads(out)
    return parsed


def distributions(found: dict[str, Any]) -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], float]]:
    outputs = found["outputs"]
    return (
        {tuple(one["tokens"]): one["distribution"] for one in outputs if one["distribution"]},
        {tuple(one["tokens"]): one["restricted"] for one in outputs if one["restricted"]},
    )


def as_oracle() -> Table:
    names = TABLE["tokens"]

    def distribution(prefix: tuple[int, ...]) -> list[float]:
        row = TABLE["distribution"].get(" ".join(names[token] for token in prefix), TABLE["otherwise"])
        return row if isinstance(row, list) else [row.get(name, 0.0) for name in names]

    return Table(distribution, 4, eos=3)


def allowed(prefix: tuple[int, ...]) -> bool:
    text = "".join(TABLE["tokens"][token] for token in prefix if token != 3)
    whole = 3 in prefix or len(prefix) == 4
    fits = text in WORDS or (text[:1] == "b" and "b" not in text[1:])
    return fits if whole else fits or any(word.startswith(text) for word in WORDS)


def test_the_distribution_equals_that_of_the_library(run):
    found = record(run, f"--table table.json --max-new-tokens 4 --verifier {RULE} {MASKED}")
    sampler = exact_distribution(MaskedDecoding(), as_oracle(), allowed, max_new_tokens=4)
    target = target_distribution(as_oracle(), allowed, max_new_tokens=4)
    given, restricted = distributions(found)
    assert total_variation(given, sampler.probabilities) < 1e-12
    assert total_variation(restricted, target) < 1e-12
    assert found["total_variation"] == pytest.approx(
        total_variation(sampler.probabilities, target), abs=1e-12
    )
    assert found["total_variation"] > 0.1
    assert found["expected_calls"] == pytest.approx(sampler.expected_calls, abs=1e-12)
    assert found["weighted_variation"] < 1e-12
    kl = math.fsum(p * math.log(p / target[x]) for x, p in sampler.probabilities.items())
    assert found["kl"] == pytest.approx(kl, abs=1e-12)
    assert {one["text"] for one in found["outputs"]} >= WORDS - {"abb", "abbc"}


def test_rejected_outputs_are_counted(run):
    ruled = "--table table.json --max-new-tokens 4"
    found = record(run, f"{ruled} --verifier {RULE} --sampler ancestral")
    # Masked decoding is the default, because the verifier has a mask.
    short = record(run, f"{ruled} --regex {RULE.removeprefix('regex:')}")
    assert short["rejected"] == 0
    assert short == record(run, f"{ruled} --verifier {RULE} --sampler masked-decoding")
    assert found["rejected"] == pytest.approx(1 - found["accepted_mass"], abs=1e-12)
    assert found["total_variation"] == pytest.approx(found["rejected"], abs=1e-12)
    assert found["kl"] is None
    assert found["reverse_kl"] == pytest.approx(-math.log(found["accepted_mass"]), abs=1e-12)


def test_exact_values_make_the_first_leaf_exact(run):
    coins = """--distribution 'uniform:{"tokens": ["0", "1"]}' --max-new-tokens 4 --verifier 'regex:[01]*1'"""
    sampler = "--sampler value-guided"
    found = record(run, f"{coins} {sampler} --values exact")
    assert found["total_variation"] < 1e-12
    assert found["leaf_mass"] == pytest.approx(1 / 8, abs=1e-12)
    assert found["different_nodes"] < 16 == pytest.approx(found["expected_calls"])
    assert record(run, f"{coins} {sampler}")["leaf_mass"] < 1 / 8


def test_values_may_come_from_a_file(run):
    values = {"": 1, "0": 0.5, "1": 1, "0 0": 1, "0 1": 2, "1 0": 1, "1 1": 1}
    Path("values.json").write_text(json.dumps(values))
    coins = """--distribution 'uniform:{"tokens": ["0", "1"], "length": 2}' --sampler value-guided"""
    found = record(run, f"{coins} --values values.json --no-stop-at-leaf")
    assert found["never_halts"] == 1
    found = record(run, f"{coins} --values values.json")
    assert distributions(found)[1] == {(0, 0): 0.2, (0, 1): 0.4, (1, 0): 0.2, (1, 1): 0.2}
    assert found["total_variation"] > 0.01


def test_structured_distributions_accept_prompts(run):
    dyck = 'dyck:{"length": 6, "type_probs": [0.5, 0.5]}'
    found = record(run, f"--distribution '{dyck}' --prompt '[('")
    distribution = Dyck(6, (0.5, 0.5))
    expected = exact_distribution(MaskedDecoding(), distribution, distribution, prompt=(0, 2)).probabilities
    assert total_variation({(0, 2, *x): p for x, p in distributions(found)[0].items()}, expected) < 1e-12
    assert all(one["text"].startswith(")") or one["text"][0] in "[(" for one in found["outputs"])
    assert record(run, """--distribution 'primes:{"digits": 1}'""")["outputs"][0]["text"] in "2357"


def test_a_language_model_with_a_short_horizon_is_enumerated(run, tmp_path):
    model = str(save_tiny(tmp_path / "tiny"))
    words = f"--model {model} --prompt the --max-new-tokens 2 --verifier 'regex: (cat|dog|mat)'"
    found = record(run, f"{words} {MASKED}")
    assert 0 < found["accepted_mass"] < 1e-3
    assert {one["text"] for one in found["outputs"]} <= {" cat", " dog", " mat"}
    assert math.fsum(distributions(found)[0].values()) + found["failed"] == pytest.approx(1, abs=1e-9)
    assert found["weighted_variation"] < 1e-6
    template = "{{ messages | map(attribute='content') | join(' ') }}"
    (tmp_path / "tiny" / "chat_template.jinja").write_text(template)
    options = f"--model {model} --max-new-tokens 2 --verifier 'regex: (cat|dog|mat)' {MASKED}"
    assert record(run, f"{options} --prompt the --chat --system a") == record(
        run, f"{options} --prompt 'a the'"
    )


def test_progress_is_counted_on_standard_error(capsys):
    table = Table(lambda prefix: (0.5, 0.5), 2)
    exact_distribution(MaskedDecoding(), table, lambda prefix: True, max_new_tokens=3, progress=True)
    out, err = capsys.readouterr()
    assert (out, "states of the sampler" in err) == ("", True)


def test_tables_and_figures_are_written(run):
    words = f"--table table.json --max-new-tokens 4 --verifier {RULE} --top 5 {MASKED}"
    code, out, _ = run(f"{words} --figure tree.svg")
    assert code == 0
    assert "total variation distance to the target" in out
    assert "0.29" in out
    assert "outputs are not shown" in out
    content = Path("tree.svg").read_bytes()
    assert len(ElementTree.fromstring(content).findall(".//{http://www.w3.org/2000/svg}path")) > 20
    assert run(f"{words} --figure again.svg")[0] == run(f"{words} --figure tree.png")[0] == 0
    assert Path("again.svg").read_bytes() == content
    assert Path("tree.png").read_bytes().startswith(b"\x89PNG")


def test_a_missing_extra_for_figures_is_reported(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    case = (shlex.quote(f"{TWO_COINS} --figure tree.svg"), "pip install 'trialogue[plot]'")
    assert not commands_without_expected_error([case], run)


UNIFORM = """--distribution 'uniform:{"tokens": ["0", "1"]}'"""
TWO_COINS = f"{UNIFORM} --max-new-tokens 2"
GUIDED = f"{TWO_COINS} --sampler value-guided --values values.json"
TABLES: list[tuple[dict[str, Any], str]] = [
    (
        {"distribution": {"": [0.5, 0.4, 0, 0]}},
        "table='table.json': after '' the probabilities sum to 0.9: make them sum",
    ),
    (
        {"distribution": {"": [1.5, -0.5, 0, 0]}},
        "['distribution'][''][1]=-0.5: should be greater than or equal to 0",
    ),
    ({"tokens": ["a", "a", "."]}, "give each token a different text"),
    (
        {"distribution": {"a d": [1, 0, 0, 0]}},
        "use the tokens a, b, c, ., separated by spaces: 'a d' contains 'd'",
    ),
    ({"eos": "!"}, "use one of the tokens as \"eos\": '!' is not one"),
    ({"tokens": ["a", "b c"]}, "use tokens without spaces"),
    ({"colour": 1}, "['colour']=1: Extra inputs are not permitted"),
    ({"otherwise": [1, 1, 1, 1]}, '"otherwise": the probabilities sum to 4'),
]
VALUES: list[tuple[dict[str, float], str]] = [
    ({"": 1, "0": -1}, "['0']=-1: should be greater than or equal to 0"),
    ({"": 1, "0": float("nan")}, "['0']=nan: should be a finite number"),
    ({"": 1, "0": 1}, "the table of 2 values has no entry for this prefix"),
    (
        {"": 1, "0": 0, "1": 0, "0 0": 1, "0 1": 1, "1 0": 1, "1 1": 1},
        "the sampler always stops without an output",
    ),
]
COMMANDS: list[tuple[str, str]] = [
    ("", "table=None: use exactly one of"),
    ("--table missing.json", "table='missing.json': it cannot be read: No such file"),
    (UNIFORM, "max_new_tokens=None: give a number"),
    (
        f"{UNIFORM} --max-new-tokens 40",
        "max_new_tokens=40: use a shorter horizon, or increase --max-states=200000 for a tree of up to 2,199",
    ),
    (
        f"{UNIFORM} --max-new-tokens 4 --sampler best-of-n --verifier 'regex:0*' --max-states 40",
        "max_states=40: the sampler has more than 40 states",
    ),
    ("--distribution coins", "distribution='coins': no such distribution: use one of dyck"),
    ("--table table.json --prompt d --max-new-tokens 2", "prompt='d': no sequence of tokens spells it"),
    ("""--distribution 'dyck:{"length": 5}'""", "length=5: must be even for complete strings"),
    (
        f"{TWO_COINS} --sampler rejection",
        "verifier=None: add --verifier SPEC: the sampler rejection needs it",
    ),
    (f"{UNIFORM} --sampler value-guided", "add --verifier SPEC or --values FILE"),
    (f"{UNIFORM} --values exact", "leave it out: the sampler ancestral uses no values"),
    (f"{UNIFORM} --sampler value-guided --values exact", "add --verifier SPEC: exact values"),
    (f"{TWO_COINS} --verifier regex:000", "verifier=0.0: use another verifier or more tokens"),
    (f"{TWO_COINS} --figure tree.pdf", "ends in .svg or .png"),
    (f"{UNIFORM} --chat", "chat=True: leave it out: only a language model (--model) has a chat template"),
    ("--model tiny --system Hi", "system='Hi': add --chat"),
    (f"{UNIFORM} --quota 3", "it belongs to the sampler backtracking"),
    (f"{UNIFORM} --on-error reject", "on_error='reject': leave it out: the exact distribution requires"),
]


def test_invalid_input_is_reported_in_one_line(run):
    cases = [({}, {}, command, message) for command, message in COMMANDS]
    cases += [
        (TABLE | changed, {}, "--table table.json --max-new-tokens 2", message) for changed, message in TABLES
    ]
    cases += [({}, values, GUIDED, message) for values, message in VALUES]
    dead = {"": 1, "0": 1, "1": 0.3, "0 0": 1, "0 1": 1, "1 0": 0, "1 1": 0}
    hint = "use the value 0 for '1', not 0.3: it has no accepted continuation"
    cases.append(({}, dead, f"{GUIDED} --verifier 'regex:0[01]'", hint))
    for table, values, command, message in cases:
        Path("table.json").write_text(json.dumps(table or TABLE))
        Path("values.json").write_text(json.dumps(values))
        assert not commands_without_expected_error([(shlex.quote(command), message)], run)


def test_positive_values_of_rejected_prefixes_are_reported(run):
    Path("rule.py").write_text("def apart(text):\n    return len(text) < 2 or text[0] != text[1]\n")
    values = {"": 1, "0": 1, "1": 1, "0 0": 0, "0 1": 1, "1 0": 1, "1 1": 0}
    for rule in ("regex:01|10", "python:rule.py:apart"):
        for wrong, message in (
            ({"0": 0.5, "1": 0.1}, ""),
            ({"0 0": 0.2}, "use the value 0 for '0 0', not 0.2: the verifier rejects it"),
            ({"1": 0.5, "1 0": 0, "1 1": 3}, "use the value 0 for '1 1', not 3: the verifier rejects it"),
        ):
            Path("values.json").write_text(json.dumps(values | wrong))
            code, _, err = run(f"{GUIDED} --verifier '{rule}'")
            assert (code, message in err) == (2 if message else 0, True), err
