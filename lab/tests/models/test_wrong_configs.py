"""Tests that configs of networks reject contradictory fields."""

from typing import Any

import pytest

from trialogue.errors import InputError
from trialogue_lab.models.dyck_transformer import DyckTransformerConfig
from trialogue_lab.models.product_form import ProductFormConfig
from trialogue_lab.models.published import gpt_neo
from trialogue_lab.models.topic_transformer import TopicTransformerConfig

SITES = {"vocab_size": 3, "sites": 4}
WRONG: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (ProductFormConfig, SITES | {"sites": 300}, {"order": 3}),
    (TopicTransformerConfig, {"vocab_size": 4}, {"heads": 2}),
    (TopicTransformerConfig, {"vocab_size": 4, "embeddings": "one-hot"}, {"width": 6}),
    (DyckTransformerConfig, {"embedding": "tokens"}, {"width": 4}),
]


@pytest.mark.parametrize(("config", "accepted", "wrong"), WRONG)
def test_contradictory_fields_are_rejected(
    config: Any, accepted: dict[str, Any], wrong: dict[str, Any]
) -> None:
    (field,) = wrong
    with pytest.raises(InputError, match=f"^{field}="):
        pytest.fail(f"accepted: {config(**accepted | wrong)}")


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(InputError, match=r"^width="):
        gpt_neo(vocab_size=9, max_length=8, heads=7)
