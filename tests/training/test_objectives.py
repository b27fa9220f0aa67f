from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from weighted_strings import WEIGHTS, batch, conditionals

from trialogue.models import Transformer, TransformerConfig
from trialogue.oracles import padded
from trialogue.randomness import generator
from trialogue.training import TrainingConfig, next_token_loss, packed_token_loss, train

Loss = Callable[[Transformer, Tensor, Tensor], Tensor]


def distance_of_minimiser(loss: Loss, steps: int = 250) -> float:
    """Return the largest error of the conditionals of a network trained on the exact distribution."""
    config = TransformerConfig(vocab_size=2, layers=1, heads=2, width=16, mlp_width=32, max_length=3)
    recipe = TrainingConfig(
        steps=steps, batch_size=sum(WEIGHTS.values()), learning_rate=1e-2, weight_decay=0.0, warmup_steps=10
    )
    model = train(Transformer(config), lambda step: batch(), recipe, loss=loss, progress=False).model
    truth = conditionals()
    tokens, lengths = padded(list(truth), 3)
    context = model.open(len(truth), 3)
    features = context.features(tokens, torch.zeros_like(lengths), lengths, torch.arange(len(truth)))
    predictions = context.log_probs(features).exp()
    return max(
        (predicted - exact).abs().max().item()
        for predicted, exact in zip(predictions, truth.values(), strict=True)
    )


def _without_end(model: Transformer, tokens: Tensor, lengths: Tensor) -> Tensor:
    inputs = torch.cat((torch.full((len(tokens), 1), model.bos), tokens), 1)
    targets = tokens.masked_fill(torch.arange(3) >= lengths[:, None], -100)
    return F.cross_entropy(model(inputs)[:, :-1].flatten(0, 1), targets.flatten())


def _without_shift(model: Transformer, tokens: Tensor, lengths: Tensor) -> Tensor:
    inputs = torch.cat((tokens, torch.full((len(tokens), 1), model.eos)), 1)
    return F.cross_entropy(model(inputs).flatten(0, 1), inputs.flatten())


def _padding_counted(model: Transformer, tokens: Tensor, lengths: Tensor) -> Tensor:
    return next_token_loss(model, tokens)


def test_minimiser_has_the_true_conditionals():
    assert distance_of_minimiser(next_token_loss) < 0.01


@pytest.mark.parametrize("mutant", [_without_end, _without_shift, _padding_counted])
def test_check_rejects_mutants(mutant):
    assert distance_of_minimiser(mutant, 80) > 0.1


def test_packed_loss_predicts_every_token_and_no_end():
    model = Transformer(TransformerConfig(vocab_size=3, max_length=5), seed=1).eval()
    tokens = torch.randint(0, 3, (4, 5), generator=generator(0, "packed"))
    context, rows = model.open(4, 5), torch.arange(4)
    distributions = [
        context.features(tokens, torch.full((4,), i), torch.full((4,), i), rows) for i in range(5)
    ]
    log_probs = torch.stack(
        [context.log_probs(distribution)[rows, tokens[:, i]] for i, distribution in enumerate(distributions)]
    )
    assert packed_token_loss(model, tokens).item() == pytest.approx(-log_probs.mean().item(), abs=1e-6)
    assert next_token_loss(model, tokens).item() != pytest.approx(-log_probs.mean().item(), abs=1e-4)
