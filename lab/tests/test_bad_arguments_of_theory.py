"""Arguments that were accepted silently, or ended in an unclear traceback: each is one line naming the argument."""

import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from trialogue.models.dyck_transformer import DyckTransformer, DyckTransformerConfig

from trialogue.data import BertMasking, Ising, TopicModel
from trialogue.errors import InputError
from trialogue.models.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue_lab.analysis.attention_variation import mean_variation, stack_likeness, variation
from trialogue_lab.data.hidden_string import HiddenString, SubsetSum
from trialogue_lab.studies.translation_dependency.hidden_markov import HiddenMarkov
from trialogue_lab.studies.translation_dependency.language import TranslationLanguage
from trialogue_lab.theory import topics
from trialogue_lab.theory.balance import (
    balance_violation,
    inequality_chain,
    lipschitz_bound,
    log_weight_decay,
    pumped_distances,
    state_vectors,
)
from trialogue_lab.theory.masking.block_laws import (
    block_dynamics,
    block_law,
    conditionals,
    joint_block_dynamics,
)
from trialogue_lab.theory.masking.product_kernels import joint_law
from trialogue_lab.theory.masking.pseudolikelihood import (
    asymptotic_covariance,
    fisher_information,
    information_equality,
    masking_more,
    pseudolikelihood_information,
    pseudolikelihood_loss,
    sandwich_covariance,
)
from trialogue_lab.theory.memorization import association_encoder, expected_rank, memorize, printed_rank
from trialogue_lab.theory.memorization.rank import expected_rank_of
from trialogue_lab.theory.order_truncation import order_strengths
from trialogue_lab.theory.pruning import (
    closest_subset,
    prune_keys_and_queries,
    prune_linear,
    prune_network,
    prune_pair,
    prune_scores,
)
from trialogue_lab.theory.query_complexity.hidden_strings import search_hidden_string
from trialogue_lab.theory.value_guided import WalkChain

NAN = math.nan
LAW = torch.full((4,), 0.25)
FEATURES = torch.eye(4)
BLOCKS = block_law(2, 2, block_size=1)
NOT_A_NUMBER = torch.tensor([0.0, NAN, 0.0, 0.0])
EYE, MODEL, MASKING = torch.eye(2), TopicModel(3, 2, 2), BertMasking()
SQUARE = torch.eye(7).double()
MOMENTS = topics.moments_of(MODEL, MASKING)
BRACKETS = DyckTransformer(DyckTransformerConfig(types=2, depth=2))
ATTENTION = AttentionOnly(AttentionOnlyConfig(vocab_size=4, context=2, width=3, heads=1, head_width=2))
CHAIN = HiddenMarkov([1.0], [[0.5]], [[0.5, 0.5]], [0.5])
LANGUAGE = TranslationLanguage(words=3)
ONE = csr_array(np.eye(2))


def tokens(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows)


# What is called, and the argument and value that the error begins with. Any is what a user may give by mistake.
any_: Any = None
BLOCK_LAW = list(signature(pseudolikelihood_loss).parameters)[-1]
"""The name of the argument that takes a `BlockLaw`."""
CASES: list[tuple[str, Callable[[], object]]] = [
    ("log_weights=nan", lambda: pseudolikelihood_loss(LAW, NOT_A_NUMBER, BLOCKS)),
    ("log_weights=inf", lambda: pseudolikelihood_loss(LAW, NOT_A_NUMBER.nan_to_num(math.inf), BLOCKS)),
    (f"{BLOCK_LAW}=3", lambda: pseudolikelihood_loss(LAW, LAW, 3)),  # type: ignore[arg-type]
    ("features=nan", lambda: fisher_information(LAW, FEATURES.clone().fill_diagonal_(NAN))),
    ("features=inf", lambda: fisher_information(LAW, FEATURES / 0)),
    ("features=nan", lambda: pseudolikelihood_information(LAW, FEATURES * NAN, BLOCKS)),
    (f"{BLOCK_LAW}=None", lambda: pseudolikelihood_information(LAW, FEATURES, any_)),
    ("features=nan", lambda: sandwich_covariance(LAW, LAW, FEATURES * NAN, BLOCKS)),
    ("model=3", lambda: asymptotic_covariance(3, 1)),  # type: ignore[arg-type]
    ("model=3", lambda: information_equality(3, BLOCKS)),  # type: ignore[arg-type]
    ("model=None", lambda: masking_more(any_)),
    (f"{BLOCK_LAW}='pairs'", lambda: block_dynamics(LAW, "pairs")),  # type: ignore[arg-type]
    (f"{BLOCK_LAW}='pairs'", lambda: joint_block_dynamics(LAW, "pairs")),  # type: ignore[arg-type]
    (f"{BLOCK_LAW}='pairs'", lambda: conditionals(LAW, "pairs")),  # type: ignore[arg-type]
    ("sites=-0.5", lambda: joint_law([[-0.5, 1.5]])),
    ("sites=nan", lambda: joint_law([[NAN, 1.0]])),
    ("sites=1.2", lambda: joint_law([[0.6, 0.6]])),
    ("log_weights=nan", lambda: order_strengths(torch.full((2, 2), NAN))),
    ("log_weights=(2, 3)", lambda: order_strengths(torch.ones(2, 3))),
    ("log_weights=()", lambda: order_strengths(torch.tensor(1.0))),
    ("model=3", lambda: topics.constants(3, MASKING)),  # type: ignore[arg-type]
    ("masking=0.15", lambda: topics.constants(MODEL, 0.15)),  # type: ignore[arg-type]
    ("model=3", lambda: topics.optimal_values(3)),  # type: ignore[arg-type]
    ("masking=0.15", lambda: topics.diagonal_values(MODEL, 0.15)),  # type: ignore[arg-type]
    ("masking=0.15", lambda: topics.optimal_member(MODEL, 0.15)),  # type: ignore[arg-type]
    ("masking=0.15", lambda: topics.optimal_embedding(MODEL, 0.15)),  # type: ignore[arg-type]
    ("masking=0.15", lambda: topics.embedding_bias(MODEL, 0.15)),  # type: ignore[arg-type]
    ("masking=0.15", lambda: topics.embedding_violation(SQUARE, MODEL, 0.15)),  # type: ignore[arg-type]
    ("masking=0.15", lambda: topics.values_violation(SQUARE, MODEL, 0.15)),  # type: ignore[arg-type]
    ("values=nan", lambda: topics.values_violation(SQUARE * NAN, MODEL, MASKING)),
    ("embedding=nan", lambda: topics.embedding_violation(SQUARE * NAN, MODEL, MASKING)),
    ("model=3", lambda: topics.attention_loss(3, 1.0, 1.0)),  # type: ignore[arg-type]
    ("masking=0.15", lambda: topics.optimal_attention(MODEL, 0.15)),  # type: ignore[arg-type]
    ("masking=0.15", lambda: topics.attention_bounds(MODEL, 0.15)),  # type: ignore[arg-type]
    ("model=3", lambda: topics.moments_of(3, MASKING)),  # type: ignore[arg-type]
    ("lengths=(3,)", lambda: topics.moments_of(MODEL, MASKING, (3,))),  # type: ignore[arg-type]
    ("moments=3", lambda: topics.least_squares(3)),  # type: ignore[arg-type]
    ("values=nan", lambda: topics.squared_loss(SQUARE * NAN, MOMENTS)),
    ("values=(2, 2)", lambda: topics.squared_loss(EYE, MOMENTS)),
    ("moments=3", lambda: topics.squared_loss(SQUARE, 3)),  # type: ignore[arg-type]
    ("network=3", lambda: balance_violation(3)),  # type: ignore[arg-type]
    ("network=3", lambda: state_vectors(3)),  # type: ignore[arg-type]
    ("network=3", lambda: lipschitz_bound(3)),  # type: ignore[arg-type]
    ("network=3", lambda: inequality_chain(3)),  # type: ignore[arg-type]
    ("lengths=3", lambda: inequality_chain(BRACKETS, 3)),  # type: ignore[arg-type]
    ("network=3", lambda: pumped_distances(3, 1)),  # type: ignore[arg-type]
    ("network=3", lambda: log_weight_decay(3, 1, 0.1)),  # type: ignore[arg-type]
    ("eps=nan", lambda: log_weight_decay(BRACKETS, 8, NAN)),
    ("eps=-1.0", lambda: log_weight_decay(BRACKETS, 8, -1.0)),
    ("open_prob=nan", lambda: log_weight_decay(BRACKETS, 8, 0.1, NAN)),
    ("open_prob=1.0", lambda: log_weight_decay(BRACKETS, 8, 0.1, 1.0)),
    ("first=()", lambda: variation(3, EYE)),  # type: ignore[arg-type]
    ("second=nan", lambda: variation(EYE, EYE * NAN)),
    ("patterns='ab'", lambda: mean_variation("ab")),  # type: ignore[arg-type]
    ("attention=None", lambda: stack_likeness(any_, tokens([0, 1]))),
    ("numbers=nan", lambda: closest_subset(torch.tensor([NAN]), 1.0)),
    ("target=nan", lambda: closest_subset(torch.ones(1), NAN)),
    ("numbers=(2, 2)", lambda: closest_subset(EYE, 1.0)),
    ("target='x'", lambda: closest_subset(torch.ones(1), "x")),  # type: ignore[arg-type]
    ("numbers='x'", lambda: closest_subset("x", 1.0)),  # type: ignore[arg-type]
    ("target='x'", lambda: prune_linear("x", 4)),  # type: ignore[arg-type]
    ("first=(2,)", lambda: prune_pair(EYE, torch.ones(2), EYE)),
    ("second=(3, 2)", lambda: prune_pair(EYE, EYE, torch.ones(3, 2))),
    ("target='x'", lambda: prune_scores("x", 4)),  # type: ignore[arg-type]
    ("key=(2, 3)", lambda: prune_keys_and_queries(EYE, torch.ones(2, 3), EYE)),
    ("query=(3, 2)", lambda: prune_keys_and_queries(EYE, EYE, torch.ones(3, 2))),
    ("second=(2, 3)", lambda: prune_network(EYE, torch.ones(2, 3), (4, 6))),
    ("widths=4", lambda: prune_network(EYE, EYE, 4)),  # type: ignore[arg-type]
    ("widths=(4,)", lambda: prune_network(EYE, EYE, (4,))),  # type: ignore[arg-type]
    ("heads=-1", lambda: expected_rank(4, 2, 2, 2, -1)),
    ("width=0", lambda: expected_rank(4, 2, 0, 2, 1)),
    ("head_width=-2", lambda: expected_rank(4, 2, 2, -2, 1)),
    ("contexts=-3", lambda: printed_rank(-3, 2, 2, 1)),
    ("contexts=(2,)", lambda: expected_rank_of(ATTENTION.config, torch.ones(2).long())),
    ("encoder=3", lambda: memorize(tokens([0, 1])[0], tokens([0], [1]), 2, 2, 2, encoder=3)),  # type: ignore[arg-type]
    ("targets=9", lambda: association_encoder(tokens([0, 9])[0], 4, 2)),
    ("targets=-1", lambda: association_encoder(tokens([0, -1])[0], 4, 2)),
    ("states=3", lambda: WalkChain(3, ONE, np.ones(2, bool))),  # type: ignore[arg-type]
    ("transitions='ndarray'", lambda: WalkChain([(), (0,)], np.eye(2), np.ones(2, bool))),  # type: ignore[arg-type]
    ("leaf=array([1., 1.])", lambda: WalkChain([(), (0,)], ONE, np.ones(2))),  # type: ignore[arg-type]
    ("leaf=array([ True,  True,  True])", lambda: WalkChain([(), (0,)], ONE, np.ones(3, bool))),
    ("order=(0, 5)", lambda: search_hidden_string(HiddenString([0, 1]), 3, order=[(0, 5)])),
    ("order=3", lambda: search_hidden_string(HiddenString([0, 1]), 3, order=[3])),  # type: ignore[list-item]
    ("longest=-1", lambda: CHAIN.length_log_probs(-1)),
    ("longest='x'", lambda: CHAIN.length_log_probs("x")),  # type: ignore[arg-type]
    ("tokens=2", lambda: CHAIN.energy(tokens([0, 2]))),
    ("tokens=-1", lambda: CHAIN.energy(tokens([0, -1]))),
    ("tokens=(2,)", lambda: CHAIN.energy(torch.zeros(2).long())),
    ("tokens=2", lambda: CHAIN.site_log_probs(tokens([0, 2]))),
    ("tokens=2", lambda: CHAIN.log_probs(tokens([2, 0]), torch.tensor([[False, True]]))),
    ("masked=torch.int64", lambda: CHAIN.log_probs(tokens([0, 0]), tokens([0, 1]))),
    ("totals=3", lambda: SubsetSum((1, 2), 3)),  # type: ignore[arg-type]
    ("totals=None", lambda: SubsetSum((1, 2), any_)),
    ("source=5", lambda: LANGUAGE.condition(5)),  # type: ignore[arg-type]
    ("source=4", lambda: LANGUAGE.translate([4], seed=0)),  # type: ignore[list-item]
]


@pytest.mark.parametrize(
    ("begins", "call"), CASES, ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)]
)
def test_a_bad_argument_is_named_with_its_value(begins: str, call: Callable[[], object]) -> None:
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(f"{begins}: "), message
    assert "\n" not in message


def test_lists_and_numpy_arrays_are_pruned_like_tensors() -> None:
    chosen, missed = closest_subset([0.5, 0.25, 1.0], 0.75)  # type: ignore[arg-type]
    assert chosen.tolist() == [True, True, False]
    assert missed == 0
    assert closest_subset(np.array([0.5, 0.25]), np.float64(0.5))[1] == 0  # type: ignore[arg-type]
    from_list, from_tensor = prune_linear([[0.5]], 8), prune_linear(torch.tensor([[0.5]]), 8)  # type: ignore[arg-type]
    assert torch.equal(from_list.first, from_tensor.first)
    assert prune_network([[0.5]], [[0.5]], [8, 8]).error < 1  # type: ignore[arg-type]
    assert isinstance(
        asymptotic_covariance(Ising(torch.zeros(2, 2), torch.zeros(2)), np.int64(1)), torch.Tensor
    )
