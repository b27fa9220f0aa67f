"""Tests that invalid arguments of theory functions raise a one-line error with the name of the argument."""

from collections.abc import Callable

import numpy as np
import torch

from one_line_errors import refusals
from trialogue.data import BertMasking, Ising, TopicModel
from trialogue_lab.studies.translation_dependency.hidden_markov import HiddenMarkov
from trialogue_lab.studies.translation_dependency.language import TranslationLanguage
from trialogue_lab.theory import pruning, topics
from trialogue_lab.theory.masking.product_kernels import joint_distribution
from trialogue_lab.theory.masking.pseudolikelihood import asymptotic_covariance
from trialogue_lab.theory.memorization import association_encoder

EYE, MODEL, MASKING = torch.eye(2), TopicModel(3, 2, 2), BertMasking()
MOMENTS = topics.compute_moments(MODEL, MASKING)
CHAIN = HiddenMarkov([1.0], [[0.5]], [[0.5, 0.5]], [0.5])
LANGUAGE = TranslationLanguage(words=3)


def tokens(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows)


CASES: list[tuple[str, Callable[[], object]]] = [
    ("sites=1.2", lambda: joint_distribution([[0.6, 0.6]])),
    (r"values=\(2, 2\)", lambda: topics.squared_loss(EYE, MOMENTS)),
    (r"second=\(3, 2\)", lambda: pruning.prune_weight_matrices(EYE, EYE, torch.ones(3, 2))),
    (r"key=\(2, 3\)", lambda: pruning.prune_keys_and_queries(EYE, torch.ones(2, 3), EYE)),
    (r"second=\(2, 3\)", lambda: pruning.prune_network(EYE, torch.ones(2, 3), (4, 6))),
    ("targets=9", lambda: association_encoder(tokens([0, 9])[0], 4, 2)),
    ("tokens=2", lambda: CHAIN.energy(tokens([0, 2]))),
    (r"tokens=\(2,\)", lambda: CHAIN.energy(torch.zeros(2).long())),
    ("masked=torch.int64", lambda: CHAIN.log_probs(tokens([0, 0]), tokens([0, 1]))),
    ("source=5", lambda: LANGUAGE.condition(5)),  # type: ignore[arg-type]
    ("source=4", lambda: LANGUAGE.translate([4], seed=0)),  # type: ignore[list-item]
]


test_error_has_the_invalid_argument_and_its_value = refusals("^{}: ", CASES)


def test_lists_and_numpy_arrays_are_accepted_like_tensors() -> None:
    chosen, error = pruning.closest_subset([0.5, 0.25, 1.0], 0.75)  # type: ignore[arg-type]
    assert chosen.tolist() == [True, True, False]
    assert error == 0
    assert pruning.closest_subset(np.array([0.5, 0.25]), np.float64(0.5))[1] == 0  # type: ignore[arg-type]
    from_list, from_tensor = pruning.prune_linear([[0.5]], 8), pruning.prune_linear(torch.tensor([[0.5]]), 8)  # type: ignore[arg-type]
    assert torch.equal(from_list.first, from_tensor.first)
    assert pruning.prune_network([[0.5]], [[0.5]], [8, 8]).error < 1  # type: ignore[arg-type]
    assert isinstance(
        asymptotic_covariance(Ising(torch.zeros(2, 2), torch.zeros(2)), np.int64(1)), torch.Tensor
    )
