"""Tasks of a run: they train networks, sample clones from them, and measure a decoder on the clones."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from trialogue.models.networks.transformer import Transformer
from trialogue.randomness import generator
from trialogue.training import packed_token_loss
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.clones.material import INITIAL, load_corpus
from trialogue_lab.studies.clones.measure import make_clone_tasks, record_clone_losses
from trialogue_lab.studies.clones_gpt.config import Config


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, in the order in which they must start.

    Each of the first tasks trains one network on a text and samples sequences from it, called a clone of the text. Each
    later task trains a decoder (causal language model) on the text with one seed, and measures its loss on all clones.

    Args:
        config: Settings of the run.
    """
    return make_clone_tasks(config) + parts_by_seed(config, config.seeds, follow=_measure_decoder_training)


@dataclass(frozen=True)
class RowBatches:
    """Callable that returns a random batch of token sequences for each training step.

    Sequences are sampled with replacement.

    Args:
        rows: Token ids (n, N) of the text, with one sequence of N tokens per row.
        batch_size: Number of sequences in a batch.
        seed: Seed of the batches.
    """

    rows: Tensor
    batch_size: int
    seed: int

    def __call__(self, step: int) -> Tensor:
        """Return the batch of a training step. Calls with the same step return the same batch.

        Args:
            step: Training step.

        Returns:
            Token ids (batch_size, N).
        """
        random = generator(self.seed, "rows", step)
        return self.rows[torch.randint(0, len(self.rows), (self.batch_size,), generator=random)]


def _measure_decoder_training(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Train a causal language model on the text, and yield its losses on every clone (sampled set of sequences).

    All decoders have the same initial weights.
    """
    decoder, training = Transformer(config.decoder(), INITIAL), config.decoder_training(seed)
    batches = RowBatches(load_corpus(config, artifacts).train, training.batch_size, seed)
    yield from record_clone_losses(
        config, decoder, batches, training, packed_token_loss, config.looks, artifacts
    )
