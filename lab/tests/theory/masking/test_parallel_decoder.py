"""Tests of parallel decoders that are constructed for an arbitrary map or positive product kernel."""

import pytest
import torch

from one_line_errors import refusals
from theory.random_models import random_simplex
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue_lab.theory.masking.parallel_decoder import ParallelDecoder, kernel_decoder, map_decoder
from trialogue_lab.theory.masking.product_kernels import factorization_gap, product_transitions

SIZES = [(3, 2), (2, 3)]


def random_map(sites: int, vocab: int) -> torch.Tensor:
    return torch.randint(vocab, (vocab**sites, sites), generator=generator(0, "map", sites, vocab))


def follows_map(decoder: ParallelDecoder, following: torch.Tensor, vocab: int, steps: int = 5) -> bool:
    """Return whether greedy steps from every state agree with the map."""
    states = enumerate_sequences(vocab, following.shape[1])
    places = vocab ** torch.arange(following.shape[1] - 1, -1, -1)
    ours = theirs = states
    for _ in range(steps):
        ours, theirs = decoder.greedy(ours), following[(theirs * places).sum(1)]
        if not torch.equal(ours, theirs):
            return False
    return True


@pytest.mark.parametrize(("sites", "vocab"), SIZES)
def test_constructed_decoder_follows_any_map_for_five_steps(sites: int, vocab: int) -> None:
    following = random_map(sites, vocab)
    assert follows_map(map_decoder(following, vocab), following, vocab)


def test_decoders_with_a_broken_block_do_not_follow_the_map() -> None:
    following = random_map(3, 2)
    original = map_decoder(following, 2)
    bind, look_up = original.blocks
    for blocks in (
        (bind._replace(w_2=torch.zeros_like(bind.w_2)), look_up),
        (bind._replace(b_1=torch.zeros_like(bind.b_1)), look_up),
        (bind, look_up._replace(w_o=look_up.w_o / 3)),
    ):
        ends = (original.w_pred, original.b_pred)
        mutant = ParallelDecoder(original.tokens, original.positions, blocks, *ends)
        assert not follows_map(mutant, following, 2)


@pytest.mark.parametrize(("sites", "vocab"), SIZES)
def test_constructed_decoder_has_the_predictions_of_any_positive_product_kernel(
    sites: int, vocab: int
) -> None:
    kernel = random_simplex(vocab**sites, sites, vocab, names=("kernel", sites, vocab))
    found = kernel_decoder(kernel).predictions(enumerate_sequences(vocab, sites))
    assert torch.allclose(found, kernel, atol=1e-12)
    assert factorization_gap(product_transitions(found), sites).divergence.max() < 1e-12


def test_ties_are_broken_by_the_smallest_token() -> None:
    decoder = kernel_decoder(torch.full((4, 2, 2), 0.5))
    assert decoder.greedy(enumerate_sequences(2, 2)).sum() == 0


test_invalid_input_is_rejected = refusals(
    "{}",
    [
        (lambda: map_decoder(torch.zeros(3, 2).long(), 2), r"^following=\(3, 2\)"),
        (lambda: map_decoder(torch.full((4, 2), 2), 2), "^following=2: give the next sequence"),
        (lambda: kernel_decoder(torch.full((4, 2, 3), 0.5)), r"^predictions=\(4, 2, 3\)"),
        (lambda: kernel_decoder(torch.eye(2).repeat(4, 1, 1)), r"^predictions=0\.0: give positive"),
    ],
)
