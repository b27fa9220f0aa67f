"""Training speed of a `DyckTransformer`, compared with a `torch.nn.TransformerEncoderLayer` of the same size.

Both have one head of width 50, a residual connection, a ReLU network of width 50 and a norm. They train on the same
batches of 100 words of up to 28 brackets with the same loss and AdamW, on one thread. The script also measures the CPU
time of one training run of the study's minimal network, and extrapolates it to forty runs. Rounds alternate, and CPU
time is measured, so that other processes have little effect.
"""

import sys
import time
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from record import Record
from trialogue.training import TrainingConfig, train
from trialogue_lab.models.dyck_transformer import DyckTransformer, DyckTransformerConfig
from trialogue_lab.training.brackets import bracket_batches, closing_loss, contrastive_loss

ROUNDS, STEPS, TRAINING_STEPS = 5, 20, 300


class Peer(nn.Module):
    """Encoder layer with a causal mask on the one-hot inputs of the `DyckTransformer`."""

    def __init__(self, reader: DyckTransformer) -> None:
        super().__init__()
        self.reader = [reader]
        self.layer = nn.TransformerEncoderLayer(50, 1, 50, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(50, 4)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        x = self.reader[0].embed(tokens, lengths)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        logits: Tensor = self.head(self.layer(x, src_mask=mask, is_causal=True))
        return logits


def seconds(model: nn.Module, steps: int) -> float:
    """Return the CPU time of several training steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = bracket_batches(0, seed=1)
    start = time.process_time()
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        closing_loss(model, *batch).backward()  # type: ignore[arg-type]
        optimizer.step()
    return time.process_time() - start


def training_seconds(contrast: str) -> float:
    """Return the CPU time of one training run of the minimal network with the settings of the study."""
    config = TrainingConfig(
        steps=TRAINING_STEPS, batch_size=100, learning_rate=1e-2, weight_decay=0.0, warmup_steps=20
    )
    batches = partial(bracket_batches, seed=1, contrast=contrast)  # type: ignore[arg-type]
    loss = closing_loss if contrast == "none" else contrastive_loss
    start = time.process_time()
    train(DyckTransformer(DyckTransformerConfig(norm_floor=1e-5)), batches, config, loss=loss, progress=False)
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    record = Record("dyck_transformer")
    shape = DyckTransformerConfig(
        embedding="tokens", residual=True, norm="sum", mlps=((50, 50),), norm_floor=1e-5
    )
    ours = DyckTransformer(shape)
    contenders: dict[str, nn.Module] = {
        "trialogue": ours,
        "torch.nn.TransformerEncoderLayer": Peer(ours),
        "trialogue, minimal": DyckTransformer(DyckTransformerConfig(norm_floor=1e-5)),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for model in contenders.values():
        seconds(model, 3)
    for _ in range(ROUNDS):
        for name, model in contenders.items():
            times[name].append(seconds(model, STEPS))
    for name, taken in times.items():
        rate = STEPS / float(np.median(taken))
        record.add(name, rate, what="steps/CPU s")
        print(f"{name:34} {rate:7.1f} steps a second of processor")
    for contrast in ("none", "nested"):
        taken = training_seconds(contrast)
        record.add(f"one training, {contrast}", taken, what="CPU s")
        print(
            f"one training, regulariser {contrast:8} {taken:5.1f} s, forty {40 * taken / 60:5.1f} minutes of one core"
        )
    if "--record" in sys.argv:
        record.write()


if __name__ == "__main__":
    main()
