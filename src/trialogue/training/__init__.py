"""What a network learns: objectives, the loop that minimises them, and weights on disk.

`train` minimises `next_token_loss` unless told otherwise. To train on masks, give it batches and a loss of their own:

    batches = masked_batches(sequences, model, UniformMasks(2), batch_size=32, replacement=BERT)
    train(model, batches, TrainingConfig(steps=500, batch_size=32), loss=masked_token_loss)

A `MaskLaw` says what is to be predicted: each token with some probability (`IndependentMasks`), any k together
(`UniformMasks`), some, but each in a copy of its own (`IndividualMasks`), or one after another (`CyclicMasks`). A
`Replacement` says what the model reads there: the mask (`MASK`, which makes the answers the conditionals of the data),
or what BERT reads (`BERT`: mostly the mask, sometimes another token or the right one).

`fit_pseudolikelihood` fits an Ising model to samples by blocks that are masked, without a network.
"""

from trialogue.training.checkpoints import load_model, save_model
from trialogue.training.config import TrainingConfig
from trialogue.training.loop import TrainingResult, train
from trialogue.training.masking import (
    BERT,
    MASK,
    CyclicMasks,
    IndependentMasks,
    IndividualMasks,
    MaskLaw,
    Replacement,
    UniformMasks,
    masked_batches,
    masked_token_loss,
)
from trialogue.training.objectives import next_token_loss
from trialogue.training.pseudolikelihood import PseudolikelihoodFit, fit_pseudolikelihood

__all__ = [
    "BERT",
    "MASK",
    "CyclicMasks",
    "IndependentMasks",
    "IndividualMasks",
    "MaskLaw",
    "PseudolikelihoodFit",
    "Replacement",
    "TrainingConfig",
    "TrainingResult",
    "UniformMasks",
    "fit_pseudolikelihood",
    "load_model",
    "masked_batches",
    "masked_token_loss",
    "next_token_loss",
    "save_model",
    "train",
]
