"""Tests that configs of networks reject contradictory fields."""

from typing import Any

import pytest

from trialogue.errors import InputError
from trialogue_lab.models.dyck_transformer import DyckTransformer, DyckTransformerConfig, balanced_transformer
from trialogue_lab.models.product_form import ProductForm, ProductFormConfig
from trialogue_lab.models.published import gpt_neo
from trialogue_lab.models.self_attention import SelfAttention, SelfAttentionConfig
from trialogue_lab.models.topic_transformer import TopicTransformer, TopicTransformerConfig

SITES = {"vocab_size": 3, "sites": 4}
WRONG: list[tuple[Any, dict[str, Any], dict[str, list[Any]]]] = [
    (ProductFormConfig, SITES, {"order": [1], "initial_scale": [0.0], "vocab_size": [1]}),
    (ProductFormConfig, SITES | {"sites": 300}, {"order": [3]}),
    (SelfAttentionConfig, SITES, {"sites": [0], "initial_scale": [-1.0]}),
    (TopicTransformerConfig, {"vocab_size": 4}, {
        "vocab_size": [0], "heads": [2], "attention": ["none"], "initial_scale": [0.0]}),
    (TopicTransformerConfig, {"vocab_size": 4, "embeddings": "one-hot"}, {"width": [6]}),
    (DyckTransformerConfig, {}, {
        "types": [0], "depth": [-2], "mlps": [(), ((0,),)], "embedding": ["learned"], "norm_floor": [-1.0]}),
    (DyckTransformerConfig, {"embedding": "tokens"}, {"width": [4]}),
    (balanced_transformer, {"types": 2, "depth": 4}, {"depth": [0], "open_prob": [1.0]}),
    (gpt_neo, {"vocab_size": 9, "max_length": 8}, {"max_length": [256], "heads": [7]}),
]  # fmt: skip


@pytest.mark.parametrize(("make", "fields", "wrong"), WRONG)
def test_wrong_fields_are_rejected(make: Any, fields: dict[str, Any], wrong: dict[str, list[Any]]) -> None:
    for field, values in wrong.items():
        for value in values:
            with pytest.raises(
                InputError, match=f"^{'width' if field == 'heads' and make is gpt_neo else field}="
            ):
                pytest.fail(f"accepted: {make(**fields | {field: value})}")


@pytest.mark.parametrize("network", [ProductForm, SelfAttention, TopicTransformer, DyckTransformer])
def test_configs_of_another_class_are_rejected(network: Any) -> None:
    with pytest.raises(InputError, match=f"^config=3: give an instance of {network.__name__}Config"):
        network(3)
