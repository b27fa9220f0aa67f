"""Compare mask frequencies with their distributions, and trained networks with the conditionals of the data."""

import itertools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import chisquare
from torch import Tensor

from trialogue.models import MaskedTransformer, Transformer, TransformerConfig
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.models.networks.masked import MaskReader
from trialogue.randomness import generator
from trialogue.training import TrainingConfig, masking, train
from trialogue.training.masking import (
    BERT,
    MASK,
    AnyCount,
    CyclicMasks,
    IndependentMasks,
    IndividualMasks,
    UniformMasks,
    masked_batches,
    masked_token_loss,
    uniform_masks,
)

Loss = Callable[[MaskReader, Tensor, Tensor, Tensor], Tensor]
STATES = torch.tensor(list(itertools.product(range(2), repeat=3)))
SIXTEENTHS = torch.tensor([4, 1, 1, 2, 1, 1, 1, 5])
SEQUENCES = STATES.repeat_interleave(SIXTEENTHS, 0)


def network(seed: int = 0) -> Transformer:
    config = TransformerConfig(
        vocab_size=2, layers=1, heads=2, width=16, mlp_width=32, max_length=3, causal=False
    )
    return Transformer(config, seed)


def conditional(visible: dict[int, int], site: int) -> float:
    """Return the probability that the token at `site` is 1 given the visible tokens."""
    agree = torch.ones(len(STATES), dtype=torch.bool)
    for place, token in visible.items():
        agree &= STATES[:, place] == token
    weights = SIXTEENTHS[agree].double()
    return float((weights * STATES[agree, site]).sum() / weights.sum())


def largest_error(model: Transformer | FactoredAttention, sizes: tuple[int, ...]) -> float:
    """Return the largest error of a probability over all states and all masks of the given sizes."""
    oracle = model if isinstance(model, FactoredAttention) else MaskedTransformer(model)
    worst = 0.0
    for size in sizes:
        for sites in itertools.combinations(range(3), size):
            masked = torch.zeros(len(STATES), 3, dtype=torch.bool)
            masked[:, list(sites)] = True
            conditionals = oracle.log_probs(STATES, masked).exp()[:, :, 1]
            for row, state in enumerate(STATES.tolist()):
                visible = {place: token for place, token in enumerate(state) if place not in sites}
                for site in sites:
                    worst = max(worst, abs(float(conditionals[row, site]) - conditional(visible, site)))
    return worst


def every_pair(step: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return all pairs of states and masks, in proportion to their probability."""
    masks = STATES[1:].bool()
    tokens, chosen = SEQUENCES.repeat_interleave(len(masks), 0), masks.repeat(len(SEQUENCES), 1)
    return tokens.masked_fill(chosen, 4), tokens, chosen


def trained(batches: Callable[[int], tuple[Tensor, ...]], rows: int, loss: Loss, steps: int) -> Transformer:
    recipe = TrainingConfig(
        steps=steps, batch_size=rows, learning_rate=1e-2, weight_decay=0.0, warmup_steps=10
    )
    model = train(network(), batches, recipe, loss=loss, progress=False).model
    assert isinstance(model, Transformer)
    return model


def _without_masks(model: MaskReader, inputs: Tensor, tokens: Tensor, chosen: Tensor) -> Tensor:
    return masked_token_loss(model, tokens, tokens, chosen)


def test_minimiser_has_the_conditionals_of_every_mask():
    model = trained(every_pair, 7 * 16, masked_token_loss, 400)
    assert largest_error(model, (1, 2, 3)) < 0.02


def test_check_rejects_a_mutant():
    assert largest_error(trained(every_pair, 7 * 16, _without_masks, 100), (1, 2, 3)) > 0.1


def test_loss_is_the_mean_over_chosen_tokens():
    model = network()
    inputs, tokens, chosen = every_pair(0)
    logits = model(inputs)[:, :, :2]
    expected = F.cross_entropy(logits[chosen], tokens[chosen])
    torch.testing.assert_close(masked_token_loss(model, inputs, tokens, chosen), expected)
    assert masked_token_loss(model, inputs, tokens, torch.zeros_like(chosen)).item() == 0


def test_float64_network_has_float64_loss():
    model = FactoredAttention(FactoredAttentionConfig(vocab_size=2, sites=3)).double()
    batches = masked_batches(SEQUENCES, model, CyclicMasks(), batch_size=4)
    assert masked_token_loss(model, *batches(0)).dtype == torch.float64
    assert masked_token_loss(network().bfloat16(), *every_pair(0)).dtype == torch.float32


def test_uniform_masks_are_equally_likely():
    """Test 6000 samples of 2 out of 4 sites, and reject a distribution that prefers the first sites."""

    def p_value(masks: Tensor) -> float:
        codes = masks.long() @ torch.tensor([1, 2, 4, 8])
        counts = torch.bincount(codes, minlength=16)[[3, 5, 9, 6, 10, 12]]
        assert int(counts.sum()) == 6000
        return float(chisquare(counts.numpy()).pvalue)

    assert p_value(uniform_masks(6000, 4, 2, 0, "a")) > 1e-4
    assert not torch.equal(uniform_masks(50, 4, 2, 0, "a"), uniform_masks(50, 4, 2, 0, "b"))
    tilted = torch.rand(6000, 4, generator=generator(0)) + torch.tensor([0.1, 0, 0, 0])
    biased = torch.zeros(6000, 4, dtype=torch.bool).scatter_(1, tilted.topk(2).indices, True)
    assert p_value(biased) < 1e-6


def test_mask_distributions_have_the_right_frequencies():
    independent = IndependentMasks(0.15).masks(4000, 10, 3, 0)
    assert float(independent.double().mean()) == pytest.approx(0.15, abs=0.01)  # 5 standard errors
    both = (independent[:, 0] & independent[:, 1]).double().mean()
    assert float(both) == pytest.approx(0.0225, abs=0.012)
    assert UniformMasks(4).masks(100, 10, 3, 0).sum(1).unique().tolist() == [4]
    distribution = IndividualMasks(0.3)
    individual = distribution.masks(100, 10, 3, 0)
    assert (distribution.copies(10), distribution.copies(1), IndividualMasks(1.0).copies(7)) == (3, 1, 7)
    assert individual.shape == (300, 10)
    assert individual.sum(1).unique().tolist() == [1]
    assert individual.view(100, 3, 10).sum(1).max() == 1
    cyclic = torch.stack([CyclicMasks().masks(2, 5, step, 0) for step in range(7)])
    assert cyclic.nonzero()[:, 2].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 0, 1, 1]


def test_any_count_masks_every_number_and_every_set_equally_often():
    """Test 6000 masks of 3 out of 5 sites: 1 to 3 masked sites, and each set of two of them equally often."""
    masks = AnyCount(prompt=2).masks(6000, 5, 3, 0)
    assert not masks[:, :2].any()
    counts = torch.bincount(masks.sum(1), minlength=6)
    assert counts[[0, 4, 5]].tolist() == [0, 0, 0]
    assert float(chisquare(counts[1:4].numpy()).pvalue) > 1e-4
    left_out = (~masks[masks.sum(1) == 2][:, 2:]).sum(0)
    assert float(chisquare(left_out.numpy()).pvalue) > 1e-4
    assert AnyCount().masks(50, 1, 0, 0).all()


def test_replacement_frequencies():
    tokens = torch.randint(0, 5, (2000, 20), generator=generator(0))
    chosen = torch.rand(2000, 20, generator=generator(1)) < 0.5
    inputs = BERT.replaced(tokens, chosen, mask=7, vocab_size=5, seed=0, step=0)
    assert torch.equal(inputs[~chosen], tokens[~chosen])
    masked = (inputs == 7)[chosen].double().mean()
    changed = ((inputs != 7) & (inputs != tokens))[chosen].double().mean()
    # 20000 tokens: standard errors of 0.003 and 0.002. One in five random tokens is the token itself.
    assert float(masked) == pytest.approx(0.8, abs=0.014)
    assert float(changed) == pytest.approx(0.08, abs=0.01)
    assert torch.equal(MASK.replaced(tokens, chosen, 7, 5, 0, 0), tokens.masked_fill(chosen, 7))


def test_batches_are_a_function_of_seed_and_step():
    first, again, other = (
        masked_batches(SEQUENCES, network(), UniformMasks(1), batch_size=32, replacement=BERT, seed=seed)
        for seed in (0, 0, 1)
    )
    for step in (0, 5):
        assert all(torch.equal(a, b) for a, b in zip(first(step), again(step), strict=True))
    assert not torch.equal(first(0)[1], first(1)[1])
    assert not torch.equal(first(0)[1], other(0)[1])
    batches = masked_batches(SEQUENCES, network(), IndividualMasks(1.0), batch_size=6)
    inputs, tokens, chosen = batches(0)
    assert torch.equal(tokens[:3], tokens[:1].expand(3, 3))
    assert torch.equal(inputs, tokens.masked_fill(chosen, 4))
    assert chosen.view(2, 3, 3).sum(1).unique().tolist() == [1]


def test_masks_and_replacements_use_separate_streams(monkeypatch):
    """With a common stream, masks and replacements would be correlated."""
    names = set()
    original = masking.generator

    def recorded(seed: int, *stream: object) -> object:
        names.add(stream[0])
        return original(seed, *stream)

    monkeypatch.setattr(masking, "generator", recorded)
    masked_batches(SEQUENCES, network(), IndependentMasks(), batch_size=4, replacement=BERT)(0)
    assert names == {"sequences", "masks", "replacement"}
