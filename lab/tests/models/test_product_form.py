"""Conditionals in product form against the exact conditionals of many-body laws and against sums term by term."""

import itertools

import pytest
import torch

from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue_lab.models.product_form import ProductForm, ProductFormConfig


def holding(law: ManyBody, coincident: bool = False) -> ProductForm:
    """The form whose tensors are those of a law: equation 4 for p proportional to exp(-E), distinct sites only."""
    form = ProductForm(ProductFormConfig(vocab_size=3, sites=4, order=law.order)).double()
    for tensor, vectors in ((form.couplings, law.positions), (form.similarities, law.vectors)):
        axes = "abcd"[: law.order]
        product = torch.einsum(",".join(f"p{axis}" for axis in axes) + f"->{axes}", [vectors] * law.order)
        tensor.data.copy_(product)
    form.couplings.data.mul_(-law.strength)
    if not coincident:
        for place in itertools.product(range(4), repeat=law.order):
            if len(set(place)) < law.order:
                form.couplings.data[place] = 0.0
    return form


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_form_with_a_law_s_tensors_has_its_conditionals(order: int) -> None:
    law = ManyBody.random(4, 3, order=order, scale=1.0, seed=1)
    exact = law.site_log_probs(law.states())
    torch.testing.assert_close(holding(law).site_log_probs(law.states()), exact, rtol=1e-10, atol=1e-10)
    form = holding(law)
    form.config = ProductFormConfig(vocab_size=3, sites=4, order=order)
    wrong = (form.site_log_probs(law.states()) * (order - 1) / order).log_softmax(-1)
    assert (wrong - exact).abs().max() > 0.05


@pytest.mark.parametrize("order", [2, 3, 4])
def test_logits_are_the_sums_of_equation_4(order: int) -> None:
    form = ProductForm(ProductFormConfig(vocab_size=3, sites=4, order=order), seed=2)
    tokens = [2, 0, 1, 1]
    couplings, similarities = form.couplings.double(), form.similarities.double()
    expected = torch.zeros(3, dtype=torch.float64)
    for others in itertools.product([0, 2, 3], repeat=order - 1):
        expected += (
            order * couplings[(1, *others)] * similarities[(slice(None), *(tokens[j] for j in others))]
        )
    answer = form.site_logits(torch.tensor([tokens]))[0, 1]
    torch.testing.assert_close(answer, expected.detach(), rtol=1e-10, atol=1e-10)


def test_two_bodies_are_one_factored_layer() -> None:
    form = ProductForm(ProductFormConfig(vocab_size=3, sites=4), seed=2)
    layer = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4))
    layer.attention[0].data.copy_(2 * form.couplings)
    layer.values[0].data.copy_(form.similarities)
    tokens = torch.randint(3, (7, 4))
    torch.testing.assert_close(form.site_logits(tokens), layer.site_logits(tokens), rtol=1e-6, atol=1e-6)


def test_sequences_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match=r"^tokens="):
        ProductForm(ProductFormConfig(vocab_size=3, sites=4)).site_logits(torch.zeros(1, 3).long())
