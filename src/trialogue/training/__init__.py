"""Training of networks: losses, the training loop, observers, and saved networks.

`train` minimises `next_token_loss` by default. Use `packed_token_loss` for rows that are cut from a longer text and
have no end of sequence. To train a masked model, pass masked batches and `masked_token_loss`:

    batches = masked_batches(sequences, model, UniformMasks(2), batch_size=32, replacement=BERT)
    train(model, batches, TrainingConfig(steps=500, batch_size=32), loss=masked_token_loss)

A `MaskDistribution` chooses the tokens to predict. `IndependentMasks` masks each token with a fixed probability,
`UniformMasks` masks k tokens together, `IndividualMasks` masks several tokens, each in a separate copy of the sequence,
`CyclicMasks` masks the positions (sites) in turn, and `AnyCount` masks a random number of tokens (masked diffusion). A
`Replacement` chooses the token that the model reads at a masked site. With `MASK` the model always reads the mask token
and learns the conditionals of the data. `BERT` mixes mask tokens, random tokens and unchanged tokens.

`TrainingConfig` selects the optimizer (AdamW, Muon, SGD or Adafactor); `train` also accepts a custom one. An `Observer`
is called after updates. `Scheduled` calls a function, `Displacement` measures how far each layer has moved, and
`Checkpoints` saves networks during training:

    checkpoints = Checkpoints("checkpoints", log_steps(500, 10))
    printer = Scheduled(range(0, 501, 100), lambda update: print(update.step, float(update.loss)))
    config = TrainingConfig(steps=500, batch_size=32, optimizer="sgd", momentum=0.9, learning_rate=0.1)
    train(model, batches, config, loss=masked_token_loss, observer=[checkpoints, printer])
    first = checkpoints.load(checkpoints.steps()[0], Transformer)

`CorpusLosses` measures loss and accuracy on corpora during training and writes them to a file:

    losses = CorpusLosses({"text": sequences}, log_steps(500, 10), path="losses.jsonl")

A `StoppingRule` can end a training early: `train(..., until=rule)`.

`save_model` and `load_model` write and read a network whose class is registered (`trialogue.models.register_network`).
A `Recipe` describes everything that determines the weights of a network. `load_or_train` trains it once and caches it:

    recipe = Recipe(Transformer, model.config, batches, config, loss=masked_token_loss, checkpoints=log_steps(500, 10))
    model, losses, checkpoints = load_or_train(recipe, "artifacts")
"""

from trialogue.models.networks.saved import load_model, save_model
from trialogue.training.config import TrainingConfig
from trialogue.training.corpus_losses import CorpusLosses, Score, corpus_score, token_scores
from trialogue.training.loop import TrainingResult, train
from trialogue.training.masking import (
    BERT,
    MASK,
    AnyCount,
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
from trialogue.training.recipes import Recipe, Trained, load_or_train
from trialogue.training.running.checkpoints import Checkpoints

__all__ = [
    "BERT",
    "MASK",
    "AnyCount",
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
    "load_or_train",
    "log_steps",
    "masked_batches",
    "masked_token_loss",
    "next_token_loss",
    "packed_token_loss",
    "save_model",
    "token_scores",
    "train",
]
