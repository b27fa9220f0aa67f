"""Lower bounds on the loss of conditionals in product form, by order: the steps of the staircase.

These are the dashed lines of Figure 2 of the document on the distributional simplicity bias. The learned
tensors have the forms of equations 1 and 4. No samples are needed, because the loss is computed over the
whole distribution.
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
    """Return the smallest loss that product-form conditionals of `order` bodies reach on a distribution.

    The loss is not convex, so L-BFGS minimizes it from several random starts and the best result counts.

    Args:
        population: Distribution and masking that define the loss.
        order: Number of bodies.
        starts: Number of random starts.
        seed: Seed of the starts.

    Returns:
        Loss in nats.
    """
    config = ProductFormConfig(
        vocab_size=population.joint.shape[1], sites=population.inputs.shape[1], order=order
    )
    return min(
        _minimised(population, ProductForm(config, seed * starts + start).double()) for start in range(starts)
    )


def _minimised(population: MaskedPopulation, form: ProductForm) -> float:
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
