"""Log-probability that a sampler with a deterministic order produces given texts."""

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Masked
from trialogue.randomness import Streams
from trialogue.samplers.unmasking.engine import Prompts, evaluate, prompt_canvas, require_masked
from trialogue.samplers.unmasking.ordered import Ordered


def text_log_probs(
    sampler: Ordered,
    model: Masked,
    tokens: Tensor,
    prompts: Prompts | None = None,
    *,
    seed: int | None = None,
) -> Tensor:
    """Return the log-probability that a sampler produces each text.

    If the order is deterministic, a text determines which positions each pass reveals. The log-probability is the sum
    of the log-probabilities of the tokens in the passes that reveal them.

    Args:
        sampler: Sampler without random orders and sizes.
        model: The masked model.
        tokens: Texts (rows, length) int64.
        prompts: One prompt, or one for each text, as for `unmask` (default: everything is masked).
        seed: Seed with which a random order and random sizes are drawn for each text. The result is then the
            log-probability given the drawn positions, whose mean over seeds is at most the log-probability that the
            sampler produces the text (default: random positions are refused).

    Returns:
        Log-probabilities (rows,) float64. Texts that do not contain their prompt have -inf.

    Raises:
        InputError: If the sampler draws positions at random and there is no seed, or a text is invalid.
    """
    if not isinstance(sampler, Ordered):
        raise InputError("sampler", sampler, "use Ordered with an order that does not depend on drawn tokens")
    oracle = require_masked(model)
    if prompts is None:
        prompts = torch.full_like(tokens, -1)
    start, masked = prompt_canvas(oracle, prompts, None)
    start, masked = start.expand_as(tokens), masked.expand_as(tokens)
    state = sampler.init(start, masked)
    total = torch.zeros(len(tokens), dtype=torch.float64, device=tokens.device)
    choose = (
        _refuse if seed is None else Streams(seed, torch.arange(len(tokens), device=tokens.device)).choose
    )
    total[((tokens != start) & ~masked).any(1)] = -torch.inf
    with torch.no_grad():
        while bool(state.masked.any()):
            conditionals = evaluate(oracle, state.tokens, state.masked)
            selected = sampler.select(state, conditionals, choose) & state.masked
            rows, sites = selected.nonzero().unbind(1)
            distributions = sampler.drawing.distribution(conditionals[rows, sites])
            log_probs = distributions.gather(1, tokens[rows, sites][:, None])[:, 0]
            total.index_add_(0, rows, log_probs.double())
            state = sampler.advance(state, tokens, selected)
    return total


def _refuse(log_weights: Tensor, rows: Tensor) -> Tensor:
    """Accept choices among one option only, and raise `InputError` for all others."""
    del rows
    if bool(((log_weights > -torch.inf).sum(1) > 1).any()):
        hint = "use a seed, or an order and a size without random choices, such as LeftToRight()"
        raise InputError("sampler", "random order or size", hint)
    return log_weights.argmax(1)
