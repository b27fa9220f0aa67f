"""The best that conditionals of k bodies in product form do on a law: the steps of the staircase.

The dashed lines of Figure 2 of the document on the distributional simplicity bias, whose models have the forms of
equations 1 and 4 with learned tensors, exactly: no samples are drawn.
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
    """The least loss, in nats, that conditionals of `order` bodies in product form have on a law: the best found.

    The loss is not convex in both tensors: it is minimised by L-BFGS from so many random `starts`.
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
