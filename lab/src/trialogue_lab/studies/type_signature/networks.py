"""Small transformers that are trained to generate tuples of two primes and their product, in several orders."""

from dataclasses import dataclass

import torch
from scipy.stats import entropy
from torch import Tensor

from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.randomness import derive_seed
from trialogue.samplers import generate
from trialogue.training import TrainingConfig, train
from trialogue_lab.data.puzzles.arithmetic import Order, SemiprimeTuples
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.type_signature.config import FACTORS_FIRST, HIDDEN

_BATCH_ROWS = 4096


@dataclass(frozen=True)
class NetworkTraining:
    """Settings of a network that learns to generate tuples of two primes and their product.

    Args:
        digits: Number of digits of the primes.
        stream: Order of the numbers: "product first", "factors first", or "product first, hidden p and q" if p and q
            are also written as hidden tokens before the tuple.
        steps: Number of training steps.
        batch_size: Number of tuples per step.
        width: Width of the network.
    """

    digits: int
    stream: str
    steps: int
    batch_size: int
    width: int

    @property
    def tuples(self) -> SemiprimeTuples:
        """Uniform distribution over the tuples of visible tokens."""
        order: Order = "factors-first" if self.stream == FACTORS_FIRST else "product-first"
        return SemiprimeTuples(self.digits, order)

    @property
    def hidden(self) -> int:
        """Number of hidden tokens in front of a tuple."""
        return 2 * self.digits if self.stream == HIDDEN else 0

    def add_hidden_tokens(self, public: Tensor) -> Tensor:
        """Put the digits of the primes p and q, as hidden tokens, in front of tuples.

        If the network has no hidden tokens, the tuples are returned unchanged.

        Args:
            public: Visible tokens (n, 4 digits).

        Returns:
            Full sequences (n, hidden + 4 digits).
        """
        return torch.cat((public[:, 2 * self.digits :], public), 1) if self.hidden else public


def train_network(training: NetworkTraining, seed: int) -> Transformer:
    """Train a network to generate tuples of two primes and their product.

    Args:
        training: Settings of the network and its training.
        seed: Seed of the tuples and the initial weights.
    """
    length = training.hidden + training.tuples.max_length
    width = training.width
    shape = TransformerConfig(
        vocab_size=10, layers=2, heads=4, width=width, mlp_width=4 * width, max_length=length
    )
    network = Transformer(shape, seed)
    tuples = training.tuples.sample(
        training.steps * training.batch_size, derive_seed(seed, "type-signature", "tuples", training.digits)
    )
    batches = training.add_hidden_tokens(tuples).split(training.batch_size)
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


def measure_network(training: NetworkTraining, samples: int, seed: int) -> MeasuredRows:
    """Train a network to generate tuples of numbers, and measure how close it is to the uniform distribution.

    A tuple contains two primes and their product. Some networks write the two primes as hidden tokens before the tuple.

    Args:
        training: Settings of the network and its training.
        samples: Number of generated tuples.
        seed: Seed of the training.

    Yields:
        One row about the network, and one row per token position with the excess at this position.

        - `valid`: share of generated tuples that are valid.
        - `overlap`: 1 minus the total variation distance from the uniform distribution over tuples. For a network with
          hidden tokens, it is a lower bound on this number.
        - `excess`: KL divergence in nats from the training data to the network.
    """
    network, tuples = train_network(training, seed), training.tuples
    common = {"seed": seed, "digits": training.digits, "stream": training.stream}
    run = generate(network, num_samples=samples, seed=derive_seed(seed, "type-signature", "emitted"))
    length = training.hidden + tuples.max_length
    # A sequence that does not end directly after the last digit is not a valid tuple.
    finished = run.tokens[(run.lengths == length + 1) & (run.tokens[:, -1] == network.eos)][:, :length]
    valid = int(tuples.valid(finished[:, training.hidden :]).sum()) if len(finished) else 0
    sequences = training.add_hidden_tokens(tuples.states())
    log_probs = _compute_log_probs(network, sequences)
    totals = log_probs.sum(1)
    yield {
        "kind": "network",
        **common,
        "valid": valid / samples,
        "overlap": float(totals.exp().clamp(max=1 / tuples.size).sum()),
        "excess": float(-totals.mean() - torch.tensor(tuples.size, dtype=torch.float64).log()),
    }
    excess = -log_probs.mean(0) - _compute_entropies(sequences)
    for position, value in enumerate(excess.tolist()):
        yield {"kind": "position", **common, "position": position - training.hidden, "excess": value}


@torch.no_grad()
def _compute_log_probs(network: Transformer, sequences: Tensor) -> Tensor:
    """Return the log-probability (n, L + 1) of every token and of the end token."""
    log_probs = []
    for rows in sequences.split(_BATCH_ROWS):
        inputs = torch.cat((rows.new_full((len(rows), 1), network.bos), rows), 1)
        targets = torch.cat((rows, rows.new_full((len(rows), 1), network.eos)), 1)
        log_probs.append(network(inputs).double().log_softmax(-1).gather(2, targets[..., None])[..., 0])
    return torch.cat(log_probs)


def _compute_entropies(sequences: Tensor) -> Tensor:
    """Return the entropies (L + 1,), in nats, of each token given the previous ones.

    The distribution is uniform over `sequences`.
    """
    lengths = range(1, sequences.shape[1] + 1)
    counts = [sequences[:, :length].unique(dim=0, return_counts=True)[1] for length in lengths]
    joint = [float(entropy(each)) for each in counts]
    # The entropy of no tokens is zero, and the end token adds none.
    return torch.tensor([0.0, *joint, joint[-1]], dtype=torch.float64).diff()
