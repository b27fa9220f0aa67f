"""The verifiers and oracles of the package satisfy their contracts, and faulty ones do not."""

import math
from typing import Any

import pytest
import torch

from mutants import storage
from mutants.verifiers import ForgetfulRandomVerifier
from refusals import expect_failure
from samplers.stateful_tree import ReadingVerifier, StoredTree
from trialogue.data import Dyck
from trialogue.data.puzzles.hidden_string import HiddenString, SubsetSum, fair_bits
from trialogue.data.table import Table
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.oracles import Verifier
from trialogue.samplers import Truncated, truncated
from trialogue.testing import check_oracle, check_verifier
from trialogue.testing.trees import RandomTree
from trialogue.verifiers import All, FunctionVerifier, Product, RandomVerifier, Threshold

TREE = RandomTree(101, vocab=3, horizon=8, eos=2)
LANGUAGE = Dyck(8)
PROMPTS = [(), (0,), (2, 0)]


def network() -> Transformer:
    model = Transformer(TransformerConfig(vocab_size=3, width=32, mlp_width=64, max_length=11), seed=5)
    return model.eval().requires_grad_(False)


def conditional_of_all_tokens(prefix: tuple[int, ...]) -> list[float]:
    return [1.0 + len(prefix), 1.0 + 3 * sum(prefix) + prefix[0] if prefix else 2.0]


ORACLES = {
    "a table": lambda: TREE.table(),
    "an oracle with stored states": lambda: StoredTree(TREE),
    "a language": lambda: LANGUAGE,
    "a network": network,
    "a truncated table": lambda: truncated(TREE.table(), top_k=2),
    "a table of bounded memory": lambda: Table(conditional_of_all_tokens, 2, memory=2),
    "a truncated table without memory": lambda: truncated(Table(lambda _: (0.2, 0.8), 2), temperature=0.5),
    "a hidden string": lambda: HiddenString((0, 1, 1, 0)),
}


@pytest.mark.parametrize("name", ORACLES)
def test_oracles_keep_their_contract(name):
    check_oracle(ORACLES[name](), seeds=(0,))


@pytest.mark.parametrize(
    "context",
    [storage.UncopiedContext, storage.ShortCopyContext, storage.FreshForkContext, storage.SharedForkContext],
)
def test_contexts_that_lose_positions_are_rejected(context):
    expect_failure("", check_oracle, StoredTree(TREE, context))


class Forgetful(Truncated):
    """A truncation that declares the last token sufficient."""

    def sufficient(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return tokens.gather(1, (lengths - 1).clamp_min(0)[:, None])


class WithoutParity(HiddenString):
    """A hidden string that omits the parity from its sufficient statistic."""

    def sufficient(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return super().sufficient(tokens, lengths)[:, :1]


@pytest.mark.parametrize(
    "faulty", [Forgetful(Table(conditional_of_all_tokens, 2)), WithoutParity((0, 1, 1, 0))]
)
def test_insufficient_statistics_are_rejected(faulty):
    expect_failure("its distributions after", check_oracle, faulty)


class Unnormalised(Table):
    def next_log_probs(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return super().next_log_probs(tokens, lengths) + 0.1


class BatchDependentTable(Table):
    """A table whose results depend on the other rows."""

    def next_log_probs(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return super().next_log_probs(tokens, lengths.min().expand_as(lengths))


@pytest.mark.parametrize(
    ("faulty", "message"),
    [
        (Unnormalised, "oracle=1.10517: the probabilities of a row must sum to 1"),
        (BatchDependentTable, "differ from a fresh"),
    ],
)
def test_wrong_log_probabilities_are_rejected(faulty, message):
    expect_failure(message, check_oracle, faulty(TREE.conditional, 3, eos=2, max_length=8))


VERIFIERS = {
    "a language": LANGUAGE,
    "random values": RandomVerifier(),
    "a function of prefixes": lambda prefix: 1.0 + sum(prefix),
    "a function of completions": FunctionVerifier(lambda prefix: len(prefix), "completion"),
    "a threshold": Threshold(RandomVerifier(), 0.5),
    "a product": Product(LANGUAGE, RandomVerifier()),
    "all": All(LANGUAGE, RandomVerifier()),
}


SUMS = SubsetSum((3, 1, 2, 2, 1), (4, 7))


def test_a_verifier_of_sums_keeps_its_contract():
    for verifier in (SUMS, Threshold(SUMS, 0.5)):
        check_verifier(verifier, fair_bits(5), [(), (1,)], num_samples=100)


class DepthOnly(Dyck):
    """A language that declares brackets of different types equal."""

    def residuals(self, decoding: Any, rows: torch.Tensor) -> torch.Tensor:
        return (super().residuals(decoding, rows) >= 0).sum(1, keepdim=True)


class CountOfOnes(SubsetSum):
    """A verifier of sums that declares the number of ones as its residual."""

    def residuals(self, decoding: Any, rows: torch.Tensor) -> torch.Tensor:
        inside = torch.arange(decoding.tokens.shape[1]) < decoding.lengths[rows, None]
        return (decoding.tokens[rows] * inside).sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("faulty", "oracle"),
    [(DepthOnly(8), LANGUAGE), (CountOfOnes(SUMS.weights, (4, 7)), fair_bits(5))],
)
def test_wrong_residuals_are_rejected(faulty, oracle):
    expect_failure("has an equal residual", check_verifier, faulty, oracle, num_samples=100)


@pytest.mark.parametrize("name", VERIFIERS)
def test_verifiers_keep_their_contract(name):
    check_verifier(VERIFIERS[name], LANGUAGE, PROMPTS)


def test_a_verifier_of_hidden_states_keeps_its_contract():
    check_verifier(ReadingVerifier(TREE.value), StoredTree(TREE), [(), (0,)])


class Wrong(Verifier):
    """A verifier of lengths with one mistake."""

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake
        self.most = 1.0 if mistake == "most" else math.inf
        self.scope = "prompt" if mistake == "scope" else "completion" if mistake == "prompt" else "sequence"

    def values(self, decoding: Any, rows: torch.Tensor) -> torch.Tensor:
        lengths = decoding.lengths[rows].double()
        if self.mistake == "writing":
            decoding.tokens[rows] += 1
        return {
            "shape": lengths[:, None],
            "negative": -1 - lengths,
            "batch": lengths + len(rows),
            "order": lengths + torch.arange(len(rows)),
        }.get(self.mistake, lengths)

    def children(self, decoding: Any, rows: torch.Tensor) -> torch.Tensor | None:
        if self.mistake == "width":
            return torch.ones(len(rows), 1)
        if self.mistake == "children":
            return decoding.lengths[rows, None].double().expand(-1, decoding.vocab_size)
        return None


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("scope", "scope='prompt'"),
        ("shape", r"have the shape \(120, 1\)"),
        ("negative", "is not finite and at least 0"),
        ("most", "is above most=1.0"),
        ("batch", "if it is evaluated alone"),
        ("order", "if it is evaluated alone"),
        ("prompt", "after another prompt"),
        ("width", r"instead of \(\d+, 4\)"),
        ("children", "in `children`"),
        ("writing", "it modifies the sequences"),
    ],
)
def test_each_mistake_of_a_verifier_is_rejected(mistake, message):
    expect_failure(message, check_verifier, Wrong(mistake), LANGUAGE, PROMPTS)


def test_a_verifier_with_changing_values_is_rejected():
    expect_failure("in a second evaluation", check_verifier, ForgetfulRandomVerifier(), LANGUAGE, PROMPTS)
