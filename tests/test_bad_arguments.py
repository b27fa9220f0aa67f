"""Invalid arguments raise a one-line error that begins with the argument and its value."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from refusals import expect_error
from trialogue import generate, load_pretrained
from trialogue.data import Table
from trialogue.models import Transformer, TransformerConfig
from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.samplers.exact import kullback_leibler, total_variation, walk_conductances
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import BeamSearch
from trialogue.training import TrainingConfig, next_token_loss, packed_token_loss, train

NAN = math.nan
FAIR = Table(lambda _: (0.5, 0.5), 2, max_length=3)
ATTENTION = AttentionOnly(AttentionOnlyConfig(vocab_size=4, context=2, width=3, heads=1, head_width=2))
NETWORK = Transformer(TransformerConfig(vocab_size=3, layers=1, heads=1, width=8, mlp_width=8, max_length=4))
RECIPE = TrainingConfig(steps=1, batch_size=2, warmup_steps=0)
PAIRS = {"vocab_size": 9, "encoder_layers": 1, "decoder_layers": 1, "heads": 1, "width": 8, "mlp_width": 8}
TWIN = CausalTranslator(
    EncoderDecoder(EncoderDecoderConfig(**PAIRS, causal=True, positional_attention=False))
)  # type: ignore[arg-type]
REFINER = Refiner(EncoderDecoder(EncoderDecoderConfig(**PAIRS)))  # type: ignore[arg-type]


def tokens(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows)


def training(batch: Any) -> Any:
    return train(NETWORK, lambda step: batch, RECIPE, progress=False)


# Start of the error message and the call that raises it.
none: Any = None
CASES: list[tuple[str, Callable[[], object]]] = [
    ("first=nan", lambda: total_variation({(0,): NAN}, {(0,): 1.0})),
    ("second=-0.5", lambda: total_variation({(0,): 1.0}, {(0,): 1.5, (1,): -0.5})),
    ("second=2.0", lambda: total_variation({(0,): 1.0}, {(0,): 1.0, (1,): 1.0})),
    ("first='list'", lambda: total_variation([0.5, 0.5], {})),  # type: ignore[arg-type]
    ("second='x'", lambda: total_variation({}, {(0,): "x"})),  # type: ignore[dict-item]
    ("first=nan", lambda: kullback_leibler({(0,): NAN}, {(0,): 1.0})),
    ("contexts=(2,)", lambda: ATTENTION.context_log_probs(torch.zeros(2).long())),
    ("contexts=(1, 3)", lambda: ATTENTION.context_log_probs(tokens([0, 1, 2]))),
    ("contexts='ab'", lambda: ATTENTION.context_log_probs("ab")),  # type: ignore[arg-type]
    ("tree=3", lambda: walk_conductances(3, lambda _: 1.0)),  # type: ignore[arg-type]
    ("trace=1", lambda: generate(FAIR, trace=1)),  # type: ignore[arg-type]
    ("stop=3", lambda: generate(FAIR, stop=3)),  # type: ignore[arg-type]
    ("model=3", lambda: train(3, lambda _: tokens([0]), RECIPE)),  # type: ignore[arg-type]
    ("batches=3", lambda: train(NETWORK, 3, RECIPE)),  # type: ignore[arg-type]
    ("config=3", lambda: train(NETWORK, lambda _: tokens([0]), 3)),  # type: ignore[arg-type]
    ("batches=[[0], [1]]", lambda: training([[0], [1]])),
    ("tokens=9", lambda: training(tokens([0], [9]))),
    ("tokens=-1", lambda: training(tokens([0], [-1]))),
    ("tokens=torch.float32", lambda: training(torch.zeros(2, 1))),
    ("tokens='int'", lambda: next_token_loss(NETWORK, 3)),  # type: ignore[arg-type]
    ("tokens=3", lambda: next_token_loss(NETWORK, tokens([0, 3]), torch.tensor([2]))),
    ("tokens=3", lambda: packed_token_loss(NETWORK, tokens([0, 3]))),
    ("lengths=(2,)", lambda: next_token_loss(NETWORK, tokens([0, 1]), torch.tensor([1, 1]))),
    ("sources=4", lambda: BeamSearch().translate(TWIN, [4])),  # type: ignore[list-item]
    ("twin=3", lambda: BeamSearch().translate(3, [[4]])),  # type: ignore[arg-type]
    ("source=9", lambda: BeamSearch().translate(TWIN, [[9]])),
    ("sources=4.5", lambda: BeamSearch().translate(TWIN, [[4.5]])),  # type: ignore[list-item]
    ("sources=4", lambda: LengthBeam().translate(REFINER, [4])),  # type: ignore[list-item]
    ("sources=5", lambda: TWIN.condition(5)),  # type: ignore[arg-type]
    ("sources=5", lambda: REFINER.condition(5)),  # type: ignore[arg-type]
    ("source=9", lambda: REFINER.condition([9])),
    ("name=None", lambda: load_pretrained(none)),
    ("name=''", lambda: load_pretrained("")),
]


@pytest.mark.parametrize(
    ("start", "call"), CASES, ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)]
)
def test_an_invalid_argument_is_reported_with_its_value(start, call):
    caught = expect_error("", call)
    message = str(caught)
    assert message.startswith(f"{start}: "), message
    assert "\n" not in message
