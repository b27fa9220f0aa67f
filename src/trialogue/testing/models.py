"""What every model of whole sequences must satisfy: answers of the right shape, that fit each other."""

from typing import Any

import torch
from torch import Tensor

from trialogue.enumeration import Enumeration
from trialogue.errors import InputError
from trialogue.oracles import Energy, Joint, Masked, SequenceModel, as_model, whole_sequences
from trialogue.randomness import generator
from trialogue.samplers.chains.conditionals import listed_law
from trialogue.testing.chains import sites_in
from trialogue.testing.requirements import require

STATES = 256
"""Where there are more, so many of them at random are asked about."""
_BLOCK_STATES = 64
"""Blocks of more states are not listed."""


def check_masked(
    model: Masked,
    *,
    sites: int | None = None,
    distribution: Tensor | None = None,
    tolerance: float = 1e-9,
    seed: int = 0,
) -> None:
    """Hold a masked oracle to its contract; raises `AssertionError` that says what it breaks.

    At masked sites it answers with distributions, which depend neither on the tokens there nor on the other rows; about
    single sites all its methods say the same; and where `distribution` (V^N,) is given, p(x) of all sequences in the
    order of `itertools.product`, its conditionals are those of that distribution. `sites` is N where the model has no
    number of its own. `tolerance` is the largest difference of probabilities, for a network in single precision some
    1e-5.
    """
    asked: Masked = _role(model, Masked)
    tokens, masked = _questions(asked, sites, seed)
    distributions = asked.log_probs(tokens, masked)
    _require_shape(distributions, (*tokens.shape, asked.vocab_size), model, "log_probs")
    there = distributions[masked].double()
    worst = float((there.logsumexp(-1).exp() - 1).abs().max())
    require(worst <= tolerance, model, f"answers with weights that sum to one but for {worst:.3g}")
    others = torch.where(masked, (tokens + 1) % asked.vocab_size, tokens)
    moved = _distance(asked.log_probs(others, masked)[masked], there)
    require(moved <= tolerance, model, f"looks at masked tokens: other ones move its answers by {moved:.3g}")
    rows = torch.arange(len(tokens), device=tokens.device).flip(0)[: max(1, len(tokens) // 3)]
    moved = _distance(
        asked.log_probs(tokens[rows], masked[rows])[masked[rows]], distributions[rows][masked[rows]]
    )
    require(moved <= tolerance, model, f"answers by the batch: other rows move its answers by {moved:.3g}")
    _check_sites(asked, tokens, tolerance)
    if distribution is not None:
        moved = _distance(there, conditionals_of(distribution, asked.vocab_size, tokens, masked)[masked])
        require(moved <= tolerance, model, f"is {moved:.3g} from the conditionals of the distribution")


def _check_sites(model: Masked, tokens: Tensor, tolerance: float) -> None:
    every_site = model.site_log_probs(tokens)
    _require_shape(every_site, (*tokens.shape, model.vocab_size), model, "site_log_probs")
    for site in range(tokens.shape[1]):
        alone = torch.zeros_like(tokens, dtype=torch.bool)
        alone[:, site] = True
        distribution = model.log_probs(tokens, alone)[:, site]
        weights = model.site_log_weights(tokens, torch.full_like(tokens[:, 0], site))
        _require_shape(weights, (len(tokens), model.vocab_size), model, "site_log_weights")
        for method, answer in (("site_log_probs", every_site[:, site]), ("site_log_weights", weights)):
            moved = _distance(answer.double().log_softmax(-1), distribution)
            told = (
                f"says by {method} another distribution of site {site} than by log_probs, {moved:.3g} apart"
            )
            require(moved <= tolerance, model, told)
    logits, own = model.site_logits(tokens), model.token_logits(tokens)
    _require_shape(own, tuple(tokens.shape), model, "token_logits")
    moved = _distance(logits.double().log_softmax(-1), every_site)
    require(
        moved <= tolerance,
        model,
        f"has site_logits of other distributions than site_log_probs, {moved:.3g} apart",
    )
    apart = (own - logits.gather(2, tokens[:, :, None])[:, :, 0]).abs()
    moved = float(apart.nan_to_num(0.0).max())
    require(moved <= tolerance, model, f"has token_logits that are {moved:.3g} from its site_logits")


def check_energy(model: Energy, *, sites: int | None = None, tolerance: float = 1e-9, seed: int = 0) -> None:
    """Hold an energy to its contract; raises `AssertionError` that says what it breaks.

    One number or +inf for every sequence, whatever the other rows; and what the model says of single sites has the
    ratios that the energies have. `sites` is N where the model has no number of its own.
    """
    asked: Energy = _role(model, Energy)
    tokens, _ = _questions(asked, sites, seed)
    energies = asked.energy(tokens)
    _require_shape(energies, (len(tokens),), model, "energy")
    require(not bool(energies.isnan().any()), model, "has an energy that is no number")
    require(
        bool((energies > -torch.inf).all()),
        model,
        "has an energy of -inf, which no distribution is proportional to",
    )
    possible = tokens[energies < torch.inf]
    require(len(possible) > 0, model, "gives no sequence a finite energy")
    one_by_one = torch.cat([asked.energy(row[None]) for row in tokens[:8]])
    same = torch.allclose(one_by_one.double(), energies[:8].double(), rtol=1e-9, atol=tolerance)
    require(same, model, "gives a row another energy where other rows are asked about")
    for site in range(tokens.shape[1]):
        there = torch.full_like(possible[:, 0], site)
        distribution = listed_law(asked, possible, there[:, None]).double().log_softmax(-1)
        moved = _distance(asked.site_log_weights(possible, there).double().log_softmax(-1), distribution)
        told = f"says another distribution of site {site} than its energies, {moved:.3g} apart"
        require(moved <= tolerance, model, told)


def check_joint(model: Joint, *, sites: int | None = None, tolerance: float = 1e-9, seed: int = 0) -> None:
    """Hold draws of blocks to their contract; raises `AssertionError` that says what they break.

    Every branch of them is visited, for a few states and blocks. Sites outside of a block stay as they are, and what is
    drawn has the distribution that the model states, where it states one: by energies, by `block_log_weights`, or, of
    blocks of one site, as a masked oracle. `sites` is N where the model has no number of its own.
    """
    asked: Joint = _role(model, Joint)
    every_state, _ = _questions(asked, sites, seed)
    tokens = every_state[torch.randperm(len(every_state), generator=generator(seed, "rows"))[:4]]
    number = tokens.shape[1]
    for size in range(1, number + 1):
        if asked.vocab_size**size > _BLOCK_STATES:
            break
        order = torch.rand(tokens.shape, generator=generator(seed, "blocks", size)).argsort(1)
        block_sites = order[:, :size].sort(1).values.to(tokens.device)
        block = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, block_sites, True)
        drawn = _drawn(asked, tokens, block)
        for row, distribution in enumerate(drawn):
            kept = (~block[row]).nonzero()[:, 0].tolist()
            before = tokens[row].tolist()
            changed = [x for x in distribution if any(x[site] != before[site] for site in kept)]
            require(not changed, model, f"changes sites outside of a block: {changed[:1]}")
        if not _states_law(asked, tokens, block):
            continue
        expected = listed_law(asked, tokens, block_sites).double().softmax(1).cpu()
        for row, distribution in enumerate(drawn):
            values = whole_sequences(asked.vocab_size, size)
            probabilities = [
                distribution.get(_with(tokens[row], block_sites[row], value), 0.0) for value in values
            ]
            branches = torch.tensor(probabilities, dtype=torch.float64)
            moved = float((branches - expected[row]).abs().max())
            told = (
                f"draws the block {block_sites[row].tolist()} from another distribution than it states, "
                f"{moved:.3g} apart"
            )
            require(moved <= tolerance, model, told)


def conditionals_of(distribution: Tensor, vocab: int, tokens: Tensor, masked: Tensor) -> Tensor:
    """log p(x_i | x outside the mask) (rows, N, V) of the joint `distribution` (V^N,), state by state."""
    states = whole_sequences(vocab, tokens.shape[1])
    agree = ((tokens.cpu()[:, None] == states) | masked.cpu()[:, None]).all(2)
    here = torch.nn.functional.one_hot(states, vocab).double()
    marginals = torch.einsum("rs,siv->riv", agree * distribution.double().cpu(), here)
    return (marginals / marginals.sum(2, keepdim=True)).log()


def _drawn(model: Joint, tokens: Tensor, block: Tensor) -> list[dict[tuple[int, ...], float]]:
    """The distribution of a draw of each row's block, by all its branches."""
    distributions: list[dict[tuple[int, ...], float]] = [{} for _ in tokens]
    enumeration = Enumeration(len(tokens), 1)
    for weights, drawn in enumeration.branches(lambda: model.draw_block(tokens, block, enumeration.choose)):
        for distribution, weight, states in zip(distributions, weights.tolist(), drawn.tolist(), strict=True):
            if weight:
                distribution[tuple(states)] = distribution.get(tuple(states), 0.0) + weight
    return distributions


def _states_law(model: SequenceModel, tokens: Tensor, block: Tensor) -> bool:
    """Whether the model says the distribution of what it draws."""
    if isinstance(model, Energy) or (isinstance(model, Masked) and int(block[0].sum()) == 1):
        return True
    return model.block_log_weights(tokens, block) is not None


def _with(tokens: Tensor, sites: Tensor, values: Tensor) -> tuple[int, ...]:
    return tuple(tokens.cpu().scatter(0, sites.cpu(), values).tolist())


def _questions(model: SequenceModel, sites: int | None, seed: int) -> tuple[Tensor, Tensor]:
    """Sequences (rows, N), all while they are few, and a random mask (rows, N) of each with one site at least."""
    vocab, number = int(model.vocab_size), sites_in(model, sites)
    if vocab**number <= STATES:
        tokens = whole_sequences(vocab, number)
    else:
        tokens = torch.randint(vocab, (STATES, number), generator=generator(seed, "tokens"))
    masked = torch.rand(tokens.shape, generator=generator(seed, "masked")) < 0.5
    masked[torch.arange(len(tokens)), torch.arange(len(tokens)) % number] = True
    device = model.device or "cpu"
    return tokens.to(device), masked.to(device)


def _role(model: SequenceModel, role: Any) -> Any:
    """`model` as an instance of the base class `role`, whose methods it has."""
    asked = as_model(model)
    if not isinstance(asked, role):
        raise InputError("model", type(model).__name__, f"it is no `{role.__name__}`: it lacks the method")
    return asked


def _distance(answers: Tensor, expected: Tensor) -> float:
    """The largest difference of probabilities, given as logarithms."""
    return float((answers.double().exp().cpu() - expected.double().exp().cpu()).abs().max())


def _require_shape(answer: Tensor, shape: tuple[int, ...], model: SequenceModel, method: str) -> None:
    require(answer.shape == shape, model, f"answers {method} in the shape {tuple(answer.shape)}, not {shape}")
