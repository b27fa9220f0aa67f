"""What a network learns: objectives, the loop that minimises them, and weights on disk."""

from trialogue.training.checkpoints import load_model, save_model
from trialogue.training.config import TrainingConfig
from trialogue.training.loop import TrainingResult, train
from trialogue.training.objectives import next_token_loss

__all__ = ["TrainingConfig", "TrainingResult", "load_model", "next_token_loss", "save_model", "train"]
