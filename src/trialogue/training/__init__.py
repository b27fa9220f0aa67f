"""What a network learns: objectives, the loop that minimises them, who follows it, and networks on disk.

`train` minimises `next_token_loss` unless told otherwise; of rows of a longer text `packed_token_loss` is right, which
asks for no end. To train on masks, give it batches and a loss of their own:

    batches = masked_batches(sequences, model, UniformMasks(2), batch_size=32, replacement=BERT)
    train(model, batches, TrainingConfig(steps=500, batch_size=32), loss=masked_token_loss)

A `MaskDistribution` says what is to be predicted: each token with some probability (`IndependentMasks`), any k together
(`UniformMasks`), some, but each in a copy of its own (`IndividualMasks`), or one after another (`CyclicMasks`). A
`Replacement` says what the model reads there: the mask (`MASK`, which makes the answers the conditionals of the data),
or what BERT reads (`BERT`: mostly the mask, sometimes another token or the right one).

The optimizer is the one that `TrainingConfig` names (AdamW, Muon, SGD, Adafactor), or one of your own. An `Observer` is
told of updates while a training runs: `Scheduled` tells a function, `Displacement` measures how far each layer has
moved, `Checkpoints` keeps networks on the way:

    kept = Checkpoints("kept", log_steps(500, 10))
    told = Scheduled(range(0, 501, 100), lambda update: print(update.step, float(update.loss)))
    config = TrainingConfig(steps=500, batch_size=32, optimizer="sgd", momentum=0.9, learning_rate=0.1)
    train(model, batches, config, loss=masked_token_loss, observer=[kept, told])
    first = kept.load(kept.steps()[0], Transformer)

`CorpusLosses` measures loss and accuracy on any corpora on the way, such as the sequences trained on, into a file:

    losses = CorpusLosses({"text": sequences}, log_steps(500, 10), path="losses.jsonl")

A `StoppingRule` ends a training before its last step: `train(..., until=rule)`.

`save_model` and `load_model` write and read a network whose class is registered (`trialogue.models.register_network`).
A `Recipe` says all that decides a network's weights, and `trained` trains it once:

    recipe = Recipe(Transformer, model.config, batches, config, loss=masked_token_loss, checkpoints=log_steps(500, 10))
    model, losses, kept = trained(recipe, "artifacts")
"""

from trialogue.models.networks.saved import load_model, save_model
from trialogue.training.config import TrainingConfig
from trialogue.training.corpus_losses import CorpusLosses, Score, corpus_score, token_scores
from trialogue.training.loop import TrainingResult, train
from trialogue.training.masking import (
    BERT,
    MASK,
    CyclicMasks,
    IndependentMasks,
    IndividualMasks,
    MaskDistribution,
    MaskedBatches,
    Replacement,
    UniformMasks,
    masked_batches,
    masked_token_loss,
)
from trialogue.training.objectives import next_token_loss, packed_token_loss
from trialogue.training.observers import (
    Displacement,
    Observer,
    Scheduled,
    StoppingRule,
    Update,
    log_steps,
)
from trialogue.training.optimizers import OptimizerFactory
from trialogue.training.recipes import Recipe, Trained, trained
from trialogue.training.running.checkpoints import Checkpoints

__all__ = [
    "BERT",
    "MASK",
    "Checkpoints",
    "CorpusLosses",
    "CyclicMasks",
    "Displacement",
    "IndependentMasks",
    "IndividualMasks",
    "MaskDistribution",
    "MaskedBatches",
    "Observer",
    "OptimizerFactory",
    "Recipe",
    "Replacement",
    "Scheduled",
    "Score",
    "StoppingRule",
    "Trained",
    "TrainingConfig",
    "TrainingResult",
    "UniformMasks",
    "Update",
    "corpus_score",
    "load_model",
    "log_steps",
    "masked_batches",
    "masked_token_loss",
    "next_token_loss",
    "packed_token_loss",
    "save_model",
    "token_scores",
    "train",
    "trained",
]
