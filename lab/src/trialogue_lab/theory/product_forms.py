"""Smallest losses of models whose logits are sums of products over k tokens ("product form").

They are the dashed lines in Figure 2 of the document on the distributional simplicity bias. During training, the loss
of a network stays near these values for a while. The model is `ProductForm` (equations 1 and 4). The loss is computed
over the whole distribution, without sampling.
"""

import torch

from trialogue.validation import Count, validated
from trialogue_lab.models.product_form import ProductForm, ProductFormConfig
from trialogue_lab.training.population import MaskedPopulation, population_loss

_ROUNDS = 40
_STEPS = 50
_SETTLED = 1e-6


@validated
def product_form_bound(population: MaskedPopulation, order: int, starts: Count = 8, seed: int = 0) -> float:
    """Return the smallest loss that a `ProductForm` model with interactions of k tokens reaches.

    The loss is not convex, so L-BFGS minimizes it from several random starts, and the smallest result is returned.

    Args:
        population: Distribution and masking that define the loss.
        order: Number k of tokens in an interaction.
        starts: Number of random starts.
        seed: Seed of the starts.

    Returns:
        Loss in nats.
    """
    config = ProductFormConfig(
        vocab_size=population.joint.shape[1], sites=population.inputs.shape[1], order=order
    )
    return min(
        _minimize_loss(population, ProductForm(config, seed * starts + start).double())
        for start in range(starts)
    )


def _minimize_loss(population: MaskedPopulation, form: ProductForm) -> float:
    optimizer = torch.optim.LBFGS(
        form.parameters(),
        max_iter=_STEPS,
        history_size=_STEPS,
        tolerance_grad=1e-9,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = population_loss(form, *population(0))
        loss.backward()
        return loss

    least = float(optimizer.step(closure).detach())
    for _ in range(_ROUNDS):
        before, least = least, float(optimizer.step(closure).detach())
        if before - least < _SETTLED:
            break
    return least
