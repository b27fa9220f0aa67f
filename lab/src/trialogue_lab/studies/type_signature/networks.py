"""Networks: a small transformer per order of the tuple, and one with a hidden stream."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from scipy.stats import entropy
from torch import Tensor

from trialogue.models.transformer import Transformer, TransformerConfig
from trialogue.randomness import seed_of
from trialogue.samplers import generate
from trialogue.training import TrainingConfig, train
from trialogue_lab.data.puzzles.arithmetic import Order, SemiprimeTuples
from trialogue_lab.studies.type_signature.config import FACTORS_FIRST, HIDDEN

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Training:
    """A network is trained on `steps` batches of `batch_size` tuples of primes of `digits` digits.

    `stream` says what it reads and writes: one of the orders, or product first after a hidden stream with p and q.
    """

    digits: int
    stream: str
    steps: int
    batch_size: int
    width: int

    @property
    def tuples(self) -> SemiprimeTuples:
        """The law of what the user sees."""
        order: Order = "factors-first" if self.stream == FACTORS_FIRST else "product-first"
        return SemiprimeTuples(self.digits, order)

    @property
    def hidden(self) -> int:
        """Number of hidden tokens."""
        return 2 * self.digits if self.stream == HIDDEN else 0

    def written(self, public: Tensor) -> Tensor:
        """Whole sequences (n, hidden + 4 digits) of what the user sees (n, 4 digits): p and q go before it."""
        return torch.cat((public[:, 2 * self.digits :], public), 1) if self.hidden else public


def trained(training: Training, seed: int) -> Transformer:
    """The network of `training`, from `seed`."""
    length = training.hidden + training.tuples.max_length
    width = training.width
    shape = TransformerConfig(
        vocab_size=10, layers=2, heads=4, width=width, mlp_width=4 * width, max_length=length
    )
    network = Transformer(shape, seed)
    drawn = training.tuples.sample(
        training.steps * training.batch_size, seed_of(seed, "type-signature", "tuples", training.digits)
    )
    batches = training.written(drawn).split(training.batch_size)
    recipe = TrainingConfig(
        steps=training.steps,
        batch_size=training.batch_size,
        weight_decay=0.0,
        warmup_steps=training.steps // 10,
        seed=seed,
        bf16=False,
    )
    train(network, lambda step: batches[step], recipe, progress=False)
    return network


def network_rows(training: Training, samples: int, seed: int) -> Iterator[dict[str, Any]]:
    """What one network emits, and how far its law is from that of its data.

    `valid` is the share of `samples` whose public tokens are a tuple of the law. From the probabilities of all tuples:
    `overlap` with the uniform law (with a hidden stream that tells the truth: at most what the user sees) and
    `excess`, the KL divergence in nats from the law to the network's, also by position of the sequence.
    """
    network, tuples = trained(training, seed), training.tuples
    own = {"seed": seed, "digits": training.digits, "stream": training.stream}
    run = generate(network, num_samples=samples, seed=seed_of(seed, "type-signature", "emitted"))
    length = training.hidden + tuples.max_length
    # A sequence that ends too early, or not after the last digit, is no tuple.
    finished = run.tokens[(run.lengths == length + 1) & (run.tokens[:, -1] == network.eos)][:, :length]
    valid = int(tuples.valid(finished[:, training.hidden :]).sum()) if len(finished) else 0
    sequences = training.written(tuples.states())
    log_probs = _log_probs(network, sequences)
    whole = log_probs.sum(1)
    yield {
        "kind": "network",
        **own,
        "valid": valid / samples,
        "overlap": float(whole.exp().clamp(max=1 / tuples.size).sum()),
        "excess": float(-whole.mean() - torch.tensor(tuples.size, dtype=torch.float64).log()),
    }
    excess = -log_probs.mean(0) - _entropies(sequences)
    for position, value in enumerate(excess.tolist()):
        yield {"kind": "position", **own, "position": position - training.hidden, "excess": value}


@torch.no_grad()
def _log_probs(network: Transformer, sequences: Tensor) -> Tensor:
    """Log-probability (n, L + 1) of every token of `sequences` (n, L) and of the end after them."""
    log_probs = []
    for rows in sequences.split(_ROWS_AT_ONCE):
        inputs = torch.cat((rows.new_full((len(rows), 1), network.bos), rows), 1)
        targets = torch.cat((rows, rows.new_full((len(rows), 1), network.eos)), 1)
        log_probs.append(network(inputs).double().log_softmax(-1).gather(2, targets[..., None])[..., 0])
    return torch.cat(log_probs)


def _entropies(sequences: Tensor) -> Tensor:
    """Conditional entropies (L + 1,) in nats of each token given those before, of the uniform law on `sequences`."""
    lengths = range(1, sequences.shape[1] + 1)
    counts = [sequences[:, :length].unique(dim=0, return_counts=True)[1] for length in lengths]
    joint = [float(entropy(each)) for each in counts]
    # Before the first token nothing is known, and the end is certain.
    return torch.tensor([0.0, *joint, joint[-1]], dtype=torch.float64).diff()
