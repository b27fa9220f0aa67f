"""The engine's batch on a transformer: after any rewinds and copies it answers as a fresh pass does."""

import pytest
import torch

from trialogue.models.transformer import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.moves import Moves

CAPACITY = 12
MODEL = Transformer(
    TransformerConfig(vocab_size=3, width=32, mlp_width=64, max_length=CAPACITY - 1), seed=5
).eval()
with torch.no_grad():
    for parameter in MODEL.parameters():
        parameter.mul_(4)  # a model whose answers differ visibly between prefixes


def fresh(tokens, length) -> torch.Tensor:
    inputs = torch.cat((torch.tensor([MODEL.bos]), tokens[:length]))[None]
    return MODEL(inputs)[0, -1].log_softmax(-1)


def largest_error(seed, *, memory, corrupt=False) -> float:
    """Of all answers along a random schedule of appends, rewinds, copies, packing and refilling."""
    draw = generator(seed, "schedule")

    def integers(high, size):
        return torch.randint(0, high, (size,), generator=draw)

    batch = Batch(MODEL, 6, CAPACITY, memory=memory)
    worst = 0.0
    for _ in range(40):
        room = 6 - len(batch.lengths)
        if room > 3:
            start = integers(5, room)
            prompts = torch.randint(0, 3, (room, CAPACITY), generator=draw)
            prompts *= torch.arange(CAPACITY) < start[:, None]
            batch.add(prompts, start, start, torch.full((room,), CAPACITY))
        rows = len(batch.lengths)
        source = torch.where(integers(4, rows) == 0, integers(rows, rows), torch.arange(rows))
        held = batch.lengths[source]
        length = (held - torch.where(integers(3, rows) == 0, integers(4, rows), 0)).clamp_min(0)
        token = torch.where((integers(6, rows) > 0) & (length < CAPACITY), integers(3, rows), -1)
        batch.apply(Moves(source, length, token, torch.zeros(rows, dtype=torch.bool)))
        if corrupt:
            batch._evaluations.evaluated[:, 1:3] = batch._rows.path[:1, 1:3]
        asked = (integers(3, rows) > 0).nonzero()[:, 0]
        if len(asked):
            for row, answer in zip(asked.tolist(), batch.log_probs(asked), strict=True):
                worst = max(worst, float((answer - fresh(batch.tokens[row], batch.lengths[row])).abs().max()))
        if int(integers(8, 1)) == 0:
            batch.select((integers(2, rows) > 0).nonzero()[:, 0])
    return worst


@pytest.mark.parametrize("memory", [1, 7, 4096])
def test_answers_are_those_of_fresh_passes(memory):
    with torch.inference_mode():
        assert max(largest_error(seed, memory=memory) for seed in range(8)) < 1e-4


def test_keys_of_other_prefixes_are_told_apart():
    with torch.inference_mode():
        assert largest_error(0, memory=1, corrupt=True) > 1e-2
