"""Tests of conditionals in product form against many-body models and sums over terms."""

import itertools

import pytest
import torch

from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue_lab.models.product_form import ProductForm, ProductFormConfig


def form_of_model(model: ManyBody) -> ProductForm:
    """Return the form with the tensors of a model: equation 4 for p proportional to exp(-E), distinct sites only."""
    form = ProductForm(ProductFormConfig(vocab_size=3, sites=4, order=model.order)).double()
    for tensor, vectors in ((form.couplings, model.positions), (form.similarities, model.vectors)):
        axes = "abcd"[: model.order]
        product = torch.einsum(",".join(f"p{axis}" for axis in axes) + f"->{axes}", [vectors] * model.order)
        tensor.data.copy_(product)
    form.couplings.data.mul_(-model.strength)
    for place in itertools.product(range(4), repeat=model.order):
        if len(set(place)) < model.order:
            form.couplings.data[place] = 0.0
    return form


@pytest.mark.parametrize("order", [2, 3, 4])
def test_form_with_the_tensors_of_a_model_has_its_conditionals(order: int) -> None:
    model = ManyBody.random(4, 3, order=order, scale=1.0, seed=1)
    exact = model.site_log_probs(model.states())
    torch.testing.assert_close(
        form_of_model(model).site_log_probs(model.states()), exact, rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("order", [2, 3, 4])
def test_logits_agree_with_equation_4(order: int) -> None:
    form = ProductForm(ProductFormConfig(vocab_size=3, sites=4, order=order), seed=2)
    tokens = [2, 0, 1, 1]
    couplings, similarities = form.couplings.double(), form.similarities.double()
    expected = torch.zeros(3, dtype=torch.float64)
    for others in itertools.product([0, 2, 3], repeat=order - 1):
        expected += (
            order * couplings[(1, *others)] * similarities[(slice(None), *(tokens[j] for j in others))]
        )
    found = form.site_logits(torch.tensor([tokens]))[0, 1]
    torch.testing.assert_close(found, expected.detach(), rtol=1e-10, atol=1e-10)


def test_second_order_agrees_with_one_factored_layer() -> None:
    form = ProductForm(ProductFormConfig(vocab_size=3, sites=4), seed=2)
    layer = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4))
    layer.attention[0].data.copy_(2 * form.couplings)
    layer.values[0].data.copy_(form.similarities)
    tokens = torch.randint(3, (7, 4))
    torch.testing.assert_close(form.site_logits(tokens), layer.site_logits(tokens), rtol=1e-6, atol=1e-6)


def test_sequences_of_another_length_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^tokens="):
        ProductForm(ProductFormConfig(vocab_size=3, sites=4)).site_logits(torch.zeros(1, 3).long())
