"""What a network learns: objectives, the loop that minimises them, and weights on disk."""

from trialogue.training.checkpoints import load_model, save_model
from trialogue.training.config import TrainingConfig
from trialogue.training.loop import TrainingResult, train
from trialogue.training.masking import masked_batches, masked_token_loss
from trialogue.training.objectives import next_token_loss
from trialogue.training.pseudolikelihood import PseudolikelihoodFit, fit_pseudolikelihood

__all__ = [
    "PseudolikelihoodFit",
    "TrainingConfig",
    "TrainingResult",
    "fit_pseudolikelihood",
    "load_model",
    "masked_batches",
    "masked_token_loss",
    "next_token_loss",
    "save_model",
    "train",
]
