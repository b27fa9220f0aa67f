"""Tests of measurements of `dyck-copying` on known attention patterns, and of statistics of known rows."""

import pytest
import torch
from known_rows import table

from trialogue_lab.analysis.attention_variation import causal_baseline, variation
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.dyck_copying.measure import _summarize_attention
from trialogue_lab.studies.dyck_copying.statistics import copied, lost, sharpest


def test_measurements_of_known_patterns_have_the_expected_values() -> None:
    tokens = torch.tensor([[0, 1, 2, 3]])
    uniform = torch.ones(5, 5).tril()[None]
    uniform = uniform / uniform.sum(-1, keepdim=True)
    self_attention = torch.eye(5)[None]
    summary = _summarize_attention(uniform, tokens)
    assert summary["from_uniform"] == 0.0
    assert summary["on_closing"] == summary["on_closing_uniform"]
    assert summary["on_closing"] == pytest.approx((0 + 1 / 3 + 1 / 4 + 2 / 5) / 4)
    summary = _summarize_attention(self_attention, tokens)
    assert (summary["on_itself"], summary["on_closing"]) == (1.0, 0.5)
    expected = float(variation(self_attention, uniform)) / causal_baseline(5)
    assert summary["from_uniform"] == pytest.approx(expected)


def test_statistics_of_known_rows_have_the_expected_values() -> None:
    shares = {"copied": 1.0, "uniform": [0.9, 0.5], "tokens": 100}
    layers = {"seed": [1, 1, 2, 2], "layer": [1, 2] * 2, "from_uniform": [1, 2, 2, 4]}
    networks = table("network", arm="1 layer", seed=[1, 2], **shares)
    rows = Rows(networks + table("layer", arm="1 layer", **layers))
    counts = copied("1 layer", "uniform").counts(rows)
    assert counts is not None
    assert counts.successes.tolist() == [90, 50]
    assert lost("1 layer")(rows).tolist() == pytest.approx([0.1, 0.5])
    assert sharpest("1 layer")(rows).tolist() == [2, 4]
