"""Tests of the study `memorization-text` on generated sentences."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from refusals import expect_error
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.models.networks.transformer import Transformer
from trialogue.randomness import generator
from trialogue_lab.data.ngram_table import NgramTable
from trialogue_lab.ledger import Result, Rows
from trialogue_lab.ledger.claims.extremes import largest, smallest
from trialogue_lab.studies.memorization_text import STUDY, networks, statistics
from trialogue_lab.studies.memorization_text.config import EXACT, LIKELIEST, PRESETS, RIDGE, TABLE
from trialogue_lab.studies.memorization_text.measure import TextSample

SMOKE = PRESETS["smoke"]
TEXT = torch.randint(0, 4, (30, 40), generator=generator(0, "text")).clamp_max(2)
HELD_OUT = torch.randint(0, 4, (9, 40), generator=generator(1, "text"))


@pytest.fixture(scope="module")
def rows(smoke_run: Callable[[str], Result]) -> Rows:
    return STUDY.rows(smoke_run(STUDY.name))


def test_rows_agree_with_theory(rows):
    excess = "kl - encoder_kl"
    assert largest("network", excess, where=f"method == '{EXACT}'")(rows).item() < 1e-9
    assert smallest("network", excess, where=f"method == '{RIDGE}'")(rows).item() > 0
    assert statistics.least_slack("loose")(rows).item() > statistics.least_slack("tight")(rows).item() > 0
    assert (statistics.digits_over(LIKELIEST, RIDGE)(rows) > 0.5).all()
    assert (statistics.digits_over_alone(LIKELIEST, 0.5)(rows) > 0).all()
    assert (statistics.beyond(RIDGE, TABLE, "kl_float32")(rows) > 0).all()
    # A table that is large enough contains the exact distribution of the sample.
    assert (statistics.network("kl", TABLE, 2, True, 0.5)(rows) == 0).all()
    assert (statistics.text("table_held_out", 2)(rows) < statistics.text("alone_held_out", 2)(rows)).all()
    table = rows["network"]
    assert (table[table.method == TABLE].bytes <= 4 * table.parameters.max()).all()
    distinct = rows["text"].groupby("context").alone_kl.nunique()
    assert (distinct == len(SMOKE.seeds)).all()  # samples have different rows


def test_scores_are_means_over_text_positions():
    config = replace(SMOKE, contexts=8, widths=(2,), smoothing=0.1)
    sample = TextSample(config, 2, TEXT, HELD_OUT)
    table = NgramTable(sample.orders, smoothing=0.1, most_bytes=300)
    found = sample.scores(table.context_log_probs)
    places = HELD_OUT.unfold(1, 3, 1).reshape(-1, 3)
    losses = -table.context_log_probs(places[:, :2]).gather(1, places[:, 2:])[:, 0]
    known = torch.tensor(
        [[row.tolist() == each.tolist() for each in sample.contexts] for row in places[:, :2]]
    )
    assert found["held_out"] == pytest.approx(float(losses.mean()))
    assert found["held_out_known"] == pytest.approx(float(losses[known.any(1)].mean()))
    assert sample.known_share == pytest.approx(float(known.any(1).double().mean()))
    assert 0 < sample.known_share < 1
    terms = sample.targets.exp() * (sample.targets - table.context_log_probs(sample.contexts))
    assert found["kl"] == pytest.approx(float(sample.prior @ terms.sum(1)))
    assert found["kl"] > 0.001


def test_transformer_has_matching_size_and_training_windows():
    contexts, following = networks.sample_windows(TEXT, 3, 50, 0, step=4)
    windows = set(map(tuple, TEXT.unfold(1, 4, 1).reshape(-1, 4).tolist()))
    assert {
        (*row, token) for row, token in zip(contexts.tolist(), following.tolist(), strict=True)
    } <= windows
    assert not torch.equal(contexts, networks.sample_windows(TEXT, 3, 50, 0, step=5)[0])
    shape = AttentionOnlyConfig(vocab_size=257, context=3, width=8, heads=37, head_width=8)
    equal = networks.match_transformer_size(257, 3, 2, shape.parameters)
    transformer, attention = Transformer(equal), AttentionOnly(shape)
    assert networks.count_parameters(attention) == shape.parameters
    assert abs(networks.count_parameters(transformer) / shape.parameters - 1) < 0.01
    contexts = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert torch.equal(
        networks.compute_next_token_log_probs(attention, contexts),
        attention(contexts).detach().double().log_softmax(-1),
    )
    # The transformer reads its BOS first, and has no probability of EOS.
    read = torch.cat((torch.full((2, 1), transformer.bos), contexts), 1)
    expected = transformer(read)[:, -1, :257].detach().double().log_softmax(-1)
    assert torch.equal(networks.compute_next_token_log_probs(transformer, contexts), expected)


def test_a_text_with_too_few_rows_is_rejected(tmp_path):
    short = replace(SMOKE, samples=600, seeds=(599,))
    expect_error("samples=600: the text has too few rows", list, STUDY.parts(short)[0].measure(tmp_path))
