"""Verifiers, oracles and models of sequences satisfy their contracts, and faulty ones do not."""

import math
from typing import Any

import pytest
import torch

from contract.test_chains import MODELS
from mutants import sequence_models as mutants
from mutants import storage
from mutants.verifiers import ForgetfulRandomVerifier
from refusals import expect_error, expect_failure
from samplers.stateful_tree import ReadingVerifier, StoredTree
from trialogue.data import Dyck, Ising, PottsChain, ising_grid
from trialogue.data.puzzles.hidden_string import HiddenString, SubsetSum, fair_bits
from trialogue.data.table import Table
from trialogue.models import MaskedTransformer, Transformer, TransformerConfig
from trialogue.oracles import Verifier
from trialogue.samplers import ChainRule, Truncated, truncated
from trialogue.testing import check_energy, check_joint, check_masked, check_oracle, check_verifier
from trialogue.testing.chains import small_ising
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


@pytest.mark.parametrize("context", [storage.UncopiedContext, storage.SharedForkContext])
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
    ("faulty", "oracle"), [(DepthOnly(8), LANGUAGE), (CountOfOnes(SUMS.weights, (4, 7)), fair_bits(5))]
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


ISING = small_ising()
LARGE = {
    "clique": Ising.clique(14, 12, 0.2, torch.linspace(-0.3, 0.5, 14)),
    "grid": ising_grid(3, 4, 0.4),
    "potts": PottsChain(torch.arange(27.0).view(3, 3, 3) % 7).at(9, temperature=2.0),
}


@pytest.mark.parametrize("name", ["ising", "clique", "potts", "masked"])
def test_masked_oracles_keep_their_contract(name):
    check_masked(MODELS[name], distribution=MODELS[name].probabilities())
    check_masked(ChainRule(MODELS[name]), distribution=MODELS[name].probabilities())


@pytest.mark.parametrize("name", ["ising", "clique", "energy", "energy-of-ising", "potts"])
def test_energies_keep_their_contract(name):
    check_energy(MODELS[name])


@pytest.mark.parametrize("name", ["ising", "clique", "potts"])
def test_joint_draws_keep_their_contract(name):
    check_joint(MODELS[name])
    check_joint(ChainRule(MODELS[name]))


@pytest.mark.parametrize("name", LARGE)
def test_larger_models_keep_their_contract(name):
    check_masked(LARGE[name])
    check_energy(LARGE[name])
    check_joint(LARGE[name])


def test_a_network_keeps_its_contract():
    config = TransformerConfig(
        vocab_size=3, layers=1, width=8, heads=2, mlp_width=8, max_length=4, causal=False
    )
    check_masked(MaskedTransformer(Transformer(config)), sites=4, tolerance=1e-5)


@pytest.mark.parametrize(
    ("mutant", "check", "message"),
    [
        (mutants.Unnormalised, check_masked, "whose sum differs from 1"),
        (mutants.Peeking, check_masked, "depends on masked tokens"),
        (mutants.Batched, check_masked, "depends on the batch"),
        (mutants.Flat, check_masked, r"log_probs has the shape \(4, 2\) instead of \(16, 4, 2\)"),
        (mutants.StaleSites, check_masked, "site_log_probs and log_probs of site 0 differ"),
        (mutants.OtherLogits, check_masked, "site_logits and site_log_probs differ"),
        (mutants.ShiftedTokens, check_masked, "token_logits and site_logits differ by 1"),
        (mutants.StaleWeights, check_masked, "site_log_weights and log_probs of site 0 differ"),
        (mutants.StaleWeights, check_energy, "site_log_weights of site 0 and the energies differ"),
        (mutants.NoNumber, check_energy, "NaN"),
        (mutants.Bottomless, check_energy, "-inf"),
        (mutants.Impossible, check_energy, "has no sequence of finite energy"),
        (mutants.Centred, check_energy, "energies that depend on the other rows"),
        (mutants.Nodewise, check_joint, "samples of the block .* differ by"),
        (mutants.Spilling, check_joint, "changes sites outside of the block"),
    ],
)
def test_the_contracts_reject_faulty_models(mutant, check, message):
    check(ISING)
    expect_failure(message, check, mutant(ISING.coupling, ISING.field))


def test_the_checked_methods_must_exist():
    expect_error("model='Energies': it is not an instance of `Masked`", check_masked, MODELS["energy"])
    expect_error("model='Conditionals': it is not an instance of `Energy`", check_energy, MODELS["masked"])


def test_another_distribution_is_rejected():
    other = mutants.OtherDistribution(ISING.coupling, ISING.field)
    check_masked(other)
    with pytest.raises(AssertionError, match="from the conditionals of the distribution"):
        check_masked(other, distribution=ISING.probabilities())
