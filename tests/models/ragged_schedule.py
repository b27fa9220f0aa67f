"""Random ragged schedules of `Batch`, whose results are compared with uncached passes."""

import math

import torch
from torch import Tensor

from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.randomness import generator
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.moves import Moves

ROWS = 5


def fresh_pass(oracle: PretrainedOracle, tokens: Tensor) -> Tensor:
    """Return log-probabilities (vocab,) after `tokens` (n,), from a forward pass without cache and batch."""
    with torch.inference_mode():
        return oracle.model(input_ids=tokens[None], use_cache=False).logits[0, -1].float().log_softmax(-1)


def largest_error(oracle: PretrainedOracle, seed: int, memory: int, *, capacity: int = 14) -> float:
    """Return the largest difference from uncached passes along a random schedule of moves and refills."""
    ids = torch.arange(3, 9)
    draw = generator(seed, "schedule of a pretrained model")

    def integers(high: int, size: int) -> Tensor:
        return torch.randint(0, high, (size,), generator=draw)

    batch = Batch(oracle, ROWS, capacity, memory=memory)
    worst = 0.0
    for _ in range(12):
        room = ROWS - len(batch.lengths)
        if room > 2:
            start = 1 + integers(6, room)
            prompts = ids[torch.randint(0, len(ids), (room, capacity), generator=draw)]
            prompts *= torch.arange(capacity) < start[:, None]
            batch.add(prompts, start, start, torch.full((room,), capacity))
        rows = len(batch.lengths)
        source = torch.where(integers(4, rows) == 0, integers(rows, rows), torch.arange(rows))
        held = batch.lengths[source]
        length = (held - torch.where(integers(3, rows) == 0, integers(5, rows), 0)).clamp_min(1)
        token = torch.where((integers(6, rows) > 0) & (length < capacity), ids[integers(len(ids), rows)], -1)
        batch.apply(Moves(source, length, token, torch.zeros(rows, dtype=torch.bool)))
        active = (integers(3, rows) > 0).nonzero()[:, 0]
        if len(active):
            for row, log_probs in zip(active.tolist(), batch.log_probs(active), strict=True):
                expected = fresh_pass(oracle, batch.tokens[row, : int(batch.lengths[row])])
                worst = max(worst, float((log_probs - expected).abs().nan_to_num(nan=math.inf).max()))
        if int(integers(6, 1)) == 0:
            batch.select((integers(2, rows) > 0).nonzero()[:, 0])
    return worst
