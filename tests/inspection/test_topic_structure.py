"""Tests of topic structure with planted topics and against plain loops."""

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from refusals import calls_without_expected_error, expect_error
from trialogue import cli
from trialogue.data.corpus.documents import split_passages
from trialogue.errors import InputError
from trialogue.inspection.topic_structure.attention import SCALE, attention_sums
from trialogue.inspection.topic_structure.measure import (
    AS_READ,
    TopicMeasurement,
    TopicSettings,
    measure_topics,
)
from trialogue.inspection.topic_structure.ratios import (
    ATTENTION,
    COSINE,
    DIFFERENT,
    DOT,
    RAW_ATTENTION,
    SAME,
    TOGETHER,
    BootstrapCounts,
    TopicComparison,
    compare_embeddings,
)
from trialogue.inspection.topic_structure.words import (
    Assignment,
    assign_words,
    fit_topics,
    most_frequent_pairs,
    single_token_words,
    tokenize_passages,
)
from trialogue.models.hub.attention_weights import AttentionModel, load_attention_model
from trialogue.randomness import generator
from trialogue_lab.studies.topic_pretrained.tiny import (
    list_synthetic_words,
    make_synthetic_documents,
    make_synthetic_tokenizer,
    make_tiny_model,
)

WORDS = 10
SMALL = {"vocab_size": 42, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
SETTINGS = TopicSettings(topics=4, passes=30, least=2, read=12, length=30)
PLANTED = [set(list_synthetic_words()[first : first + WORDS]) for first in range(0, 40, WORDS)]


@pytest.fixture(scope="module")
def corpus():
    return split_passages(make_synthetic_documents(), 40)


@pytest.fixture(scope="module")
def measurement(corpus):
    return measure_topics(make_tiny_model("encoder", causal=False), corpus, SETTINGS, control=False)[0]


def topics_of(table: torch.Tensor, measurement: TopicMeasurement) -> list[TopicComparison]:
    """Return the comparisons of the planted topics for the given embeddings (words, width)."""
    names = measurement.words.names
    own = np.array([[name in words for words in PLANTED] for name in names])
    once = BootstrapCounts(np.ones((1, len(names))), np.ones((1, 1)))
    return compare_embeddings(table, Assignment(np.arange(len(names)), own), np.array([[0, 1]]), once)


def test_planted_topics_are_found(measurement):
    found = [set(words) for words in measurement.top_words(WORDS)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, PLANTED))
    assert np.allclose(measurement.distributions.sum(1), 1)


def planted_table(names: list[str], topics: list[set[str]]) -> torch.Tensor:
    noise = torch.randn(len(names), 8, generator=generator(0, "noise"), dtype=torch.float64)
    own = torch.tensor([[float(name in words) for words in topics] for name in names], dtype=torch.float64)
    return torch.cat((own, 0.3 * noise, torch.ones(len(names), 1)), 1).float()


def test_ratio_detects_topics_in_embeddings(measurement):
    names = measurement.words.names
    table = planted_table(names, PLANTED)
    for one in topics_of(table, measurement):
        assert one.ratio.estimate > 1.4
        assert one.difference.estimate > 0.25
        assert one.pairs[SAME] == 4 * 45
        assert one.pairs[DIFFERENT] == 6 * 100
    # Other sets of words of equal size show no structure in the same embeddings.
    words = list_synthetic_words()
    for one in topics_of(planted_table(names, [set(words[first::4]) for first in range(4)]), measurement):
        assert abs(one.ratio.estimate - 1) < 0.1


@pytest.mark.parametrize("single", [True, False])
def test_means_equal_a_loop_over_pairs(measurement, single):
    words = 12  # More words than a planted topic has, so that topics overlap.
    found = {one.measure: one for one in measurement.compare(words, single=single)}
    lists = [set(row) for row in measurement.top_words(words)]
    names = measurement.words.names
    kept = [name for name in names if sum(name in row for row in lists) in ({1} if single else {1, 2, 3, 4})]
    assert (len(kept) == 40) != single
    table = measurement.table.double()
    same: dict[str, list[float]] = {COSINE: [], DOT: []}
    different: dict[str, list[float]] = {COSINE: [], DOT: []}
    for first, second in combinations(kept, 2):
        shared = any(first in row and second in row for row in lists)
        one, other = table[names.index(first)], table[names.index(second)]
        for measure, value in ((COSINE, torch.cosine_similarity(one, other, 0)), (DOT, one @ other)):
            (same if shared else different)[measure].append(float(value))
    for measure in (COSINE, DOT):
        means, pairs = found[measure].means, found[measure].pairs
        assert means[SAME].estimate == pytest.approx(np.mean(same[measure]), abs=1e-7)
        assert means[DIFFERENT].estimate == pytest.approx(np.mean(different[measure]), abs=1e-7)
        assert pairs[SAME] == len(same[measure])
        assert pairs[DIFFERENT] == len(different[measure])
        assert pairs[TOGETHER] == pairs[SAME]


@pytest.mark.parametrize("causal", [False, True])
def test_attention_sums_equal_a_loop_and_debiased_means_do_not_depend_on_length(corpus, causal):
    model = make_tiny_model("model", causal=causal)
    texts = [
        tokenize_passages(model.tokenizer, [passage.text], 8 + 3 * row)[0]
        for row, passage in enumerate(corpus[:9])
    ]
    names = list_synthetic_words()
    sums = attention_sums(model, texts, names)
    expected: dict[tuple[int, int, int], list[float]] = {}
    for row, text in enumerate(texts):
        ids = torch.tensor([text.ids])
        weights = model.attention(ids, torch.tensor([len(text.ids)]))[0]
        assert torch.allclose(weights.sum(1), torch.ones(len(weights)), atol=1e-5)
        for query, first in zip(text.places, text.words, strict=True):
            for key, second in zip(text.places, text.words, strict=True):
                if first == second or (causal and key > query) or 0 in (query, key):
                    continue
                ends = sorted((names.index(first), names.index(second)))
                weight = float(weights[query, key])
                seen = query + 1 if causal else len(text.ids)
                entry = expected.setdefault((row, *ends), [0.0, 0.0, 0.0])
                for place, value in enumerate((1.0, weight, weight * seen / SCALE)):
                    entry[place] += value
    pairs = zip(sums.passage, sums.first, sums.second, strict=True)
    found = dict(zip(pairs, zip(sums.places, sums.raw, sums.debiased, strict=True), strict=True))
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, abs=1e-6)
    # With random weights, attention is nearly uniform, so only its raw mean depends on the length of the text.
    by_text = [
        sums.debiased[sums.passage == row].sum() / sums.places[sums.passage == row].sum() for row in range(9)
    ]
    raw = [sums.raw[sums.passage == row].sum() / sums.places[sums.passage == row].sum() for row in range(9)]
    assert np.allclose(by_text, 1 / SCALE, rtol=0.05)
    assert raw[0] > 1.5 * raw[-1]


def test_bootstrap_counts_equal_repeated_words(measurement):
    names = measurement.words.names
    table = planted_table(names, PLANTED)
    own = np.array([[name in words for words in PLANTED] for name in names])
    times = np.random.RandomState(1).poisson(1, len(names)).astype(float)
    drawn = BootstrapCounts(np.stack((np.ones(len(names)), times)), np.ones((2, 1)))
    one = compare_embeddings(table, Assignment(np.arange(len(names)), own), np.array([[0, 1]]), drawn)[0]
    copies = [index for index in range(len(names)) for _ in range(int(times[index]))]
    unit = torch.nn.functional.normalize(table.double(), dim=1)
    values = [
        float(unit[first] @ unit[second])
        for first, second in combinations(copies, 2)
        if first != second and (own[first] & own[second]).any()
    ]
    assert one.means[SAME].low == pytest.approx(
        np.mean(values), abs=1e-6
    )  # With one resample, both ends equal its value.


def test_intervals_and_embeddings_as_read(measurement, corpus):
    found = {one.measure: one for one in measurement.compare(8, resamples=100)}
    for one in found.values():
        assert one.difference.low < one.difference.estimate < one.difference.high
    assert COSINE + AS_READ in found
    assert found[COSINE + AS_READ].ratio.estimate == pytest.approx(1, abs=0.1)
    causal = measure_topics(make_tiny_model("decoder", causal=True), corpus, SETTINGS, control=False)[0]
    assert causal.read is None  # The first layer of this decoder reads the input embeddings.


def test_most_frequent_pairs_equal_a_loop(measurement):
    present = measurement.words.counts.toarray() > 0
    size = present.shape[1]
    often = {(a, b): int((present[:, a] & present[:, b]).sum()) for a, b in combinations(range(size), 2)}
    expected = sorted(often, key=lambda pair: (-often[pair], pair))[:50]
    assert [tuple(pair) for pair in most_frequent_pairs(measurement.words.counts, 50)] == expected


def test_frequent_pairs_are_as_many_as_pairs_of_one_topic(measurement):
    found = {one.measure: one for one in measurement.compare(4)}
    often = [tuple(map(int, pair)) for pair in measurement.frequent_pairs]
    table = torch.nn.functional.normalize(measurement.table.double(), dim=1)
    first = often[: found[COSINE].pairs[SAME]]
    assert found[COSINE].means[TOGETHER].estimate == pytest.approx(
        np.mean([float(table[one] @ table[other]) for one, other in first]), abs=1e-6
    )
    sums = measurement.sums
    read = list(zip(sums.first.tolist(), sums.second.tolist(), strict=True))
    kept = [pair for pair in often if pair in set(read)][: found[ATTENTION].pairs[SAME]]
    rows = [place for place, pair in enumerate(read) if pair in set(kept)]
    assert found[ATTENTION].pairs[TOGETHER] == found[ATTENTION].pairs[SAME] == len(kept)
    assert found[ATTENTION].means[TOGETHER].estimate == pytest.approx(
        sums.debiased[rows].sum() / sums.places[rows].sum()
    )


def test_words_of_several_tokens_are_counted():
    tokenizer = make_synthetic_tokenizer()
    text = "The Baba, badi <unk> xx stranger-bebo bebobebo"
    one = tokenize_passages(tokenizer, [text])[0]
    assert one.words == ["baba", "badi", "stranger", "bebo", "bebobebo"]
    assert [tokenizer.convert_ids_to_tokens(one.ids)[place] for place in one.places][:2] == ["baba", "badi"]
    pieces = transformers.PreTrainedTokenizerFast(tokenizer_object=_pieces())
    two = tokenize_passages(pieces, ["the baba badibabi"] * 3)
    assert (two[0].words, two[0].several) == (["baba"], ["badibabi"])
    words = single_token_words(two, 2)
    assert (words.names, words.several, words.occurrences, words.several_kinds) == (["baba"], 3, 6, 1)
    assert tokenize_passages(pieces, ["the baba badibabi"], max_length=2)[0].several == []
    expect_error("no word is a single token in at least 4 passages", single_token_words, two, 4)


def _pieces() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    found = Tokenizer(
        models.WordPiece({"[UNK]": 0, "the": 1, "baba": 2, "badi": 3, "##babi": 4}, unk_token="[UNK]")
    )
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    return found


@pytest.mark.parametrize("stop_at", ["topic model: pass 14", "decoder: 8 of 12", "weights: 8 of 12"])
def test_interrupted_measurement_resumes_with_equal_results(corpus, tmp_path, monkeypatch, stop_at):
    monkeypatch.setattr("trialogue.inspection.topic_structure.attention._SAVE_SECONDS", -1.0)
    monkeypatch.setattr("trialogue.inspection.topic_structure.attention._REPORT_SECONDS", -1.0)
    model = make_tiny_model("decoder", causal=True)

    def stop(line: str) -> None:
        if line.startswith(stop_at) or stop_at in line:
            raise KeyboardInterrupt

    def run(report: Callable[[str], object], folder: Path | None) -> list[list[TopicComparison]]:
        found = measure_topics(model, corpus, SETTINGS, folder=folder, report=report)
        return [one.compare(8, resamples=5) for one in found]

    with pytest.raises(KeyboardInterrupt):
        run(stop, tmp_path)
    lines: list[str] = []
    assert repr(run(lines.append, tmp_path)) == repr(run(str, None))
    assert any("pass 1" in line for line in lines) == stop_at.startswith("topic model")
    again: list[str] = []
    run(again.append, tmp_path)
    assert len(again) == 1  # Nothing is measured again.


def test_invalid_input_is_reported_in_one_line(corpus, measurement):
    model = make_tiny_model("decoder", causal=True)
    cases = [
        (
            "topics=500: the corpus has 80 passages",
            lambda: measure_topics(model, corpus, TopicSettings(topics=500)),
        ),
        ("topics=81: the corpus has 80 passages", lambda: fit_topics(measurement.words.counts, 81)),
        (
            "length=65: use at most 64",
            lambda: measure_topics(model, corpus, TopicSettings(topics=4, length=65)),
        ),
        ("words=41: use from 2 to 40", lambda: assign_words(measurement.distributions, 41, single=True)),
        ("words=40: no pairs of one topic, or of different topics, remain", lambda: measurement.compare(40)),
        ("seed=-1: use at least 0", lambda: TopicSettings(seed=-1)),
        ("shortest=200: use at most 128", lambda: TopicSettings(shortest=200)),
    ]
    assert not calls_without_expected_error(cases)


def test_model_without_attention_weights_is_rejected():
    config = transformers.BertConfig(**SMALL, num_attention_heads=2, attn_implementation="sdpa")
    hint = "'sdpa' does not return attention weights. Load it with attn_implementation='eager'"
    expect_error(
        hint, AttentionModel, transformers.BertModel(config), make_synthetic_tokenizer(), name="bert"
    )
    recurrent = transformers.MambaModel(
        transformers.MambaConfig(vocab_size=42, hidden_size=16, num_hidden_layers=1)
    )
    with pytest.raises(InputError, match="it does not return attention weights"):
        AttentionModel(recurrent, make_synthetic_tokenizer(), name="mamba")


@pytest.fixture
def saved(tmp_path):
    """Return a folder with a masked model without a pooler, and a text file."""
    config = transformers.BertConfig(**SMALL, num_attention_heads=2, max_position_embeddings=64)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "model")
    make_synthetic_tokenizer().save_pretrained(tmp_path / "model")
    text = tmp_path / "text.txt"
    text.write_text("\n<|endoftext|>\n".join(make_synthetic_documents()), encoding="utf-8")
    return tmp_path / "model", text


def test_command_prints_results_and_draws_figure(saved, tmp_path, capsys):
    model, text = saved
    assert load_attention_model(model).files.startswith("sha256 ")
    sizes = [
        "--topics",
        "4",
        "--words",
        "6",
        "--read",
        "4",
        "--length",
        "20",
        "--resamples",
        "9",
        "--passes",
        "3",
    ]
    command = ["topics", "--model", str(model), "--text", str(text), "--out", str(tmp_path / "out"), *sizes]
    assert cli.main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["documents"], printed["passages"], printed["words"]) == (80, 80, 40)
    assert {one["of"] for one in printed["comparisons"]} == {
        "one topic per word",
        "one or more topics per word",
        "random weights",
    }
    assert {ATTENTION, RAW_ATTENTION, COSINE, DOT} <= {one["measure"] for one in printed["comparisons"]}
    assert (tmp_path / "out" / "topics.svg").read_text("utf-8").startswith("<?xml")
    assert cli.main([*command, "--no-control"]) == 0
    out, err = capsys.readouterr()
    assert "dot product, as read" in out
    assert "pass 1" not in err  # The topics are read from a file.
    assert cli.main([*command, "--topics", "100"]) == 2
    assert "topics=100: the corpus has 80 passages. Use fewer topics" in capsys.readouterr().err
