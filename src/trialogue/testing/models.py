"""Checks of models of complete sequences: output shapes, and agreement of the methods with each other."""

from typing import Any

import torch
from torch import Tensor

from trialogue.enumeration import Enumeration
from trialogue.errors import InputError
from trialogue.oracles import Energy, Joint, Masked, SequenceModel, as_model, enumerate_sequences
from trialogue.randomness import generator
from trialogue.samplers.chains.conditionals import block_distribution
from trialogue.testing.chains import number_of_sites
from trialogue.testing.requirements import require

STATES = 256
"""If a model has more states, this many random ones are checked."""
_BLOCK_STATES = 64
"""Blocks with more states are not checked."""


def check_masked(
    model: Masked,
    *,
    sites: int | None = None,
    distribution: Tensor | None = None,
    tolerance: float = 1e-9,
    seed: int = 0,
) -> None:
    """Check that a masked oracle satisfies the requirements for masked oracles.

    The distributions at masked sites must be normalised. They must not depend on the masked tokens or the other rows.
    All methods must agree on the distribution of a single site.

    Args:
        model: Model to check.
        sites: Number of sites N (default: the model's own number).
        distribution: Probabilities (V^N,) of all sequences in the order of `itertools.product`. If given, the
            conditionals of the model are compared with those of this distribution.
        tolerance: Largest difference of probabilities (default: 1e-9). For a float32 network, use about 1e-5.
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If a requirement is violated.
        InputError: If the model is not a masked oracle.
    """
    checked: Masked = _role(model, Masked)
    tokens, masked = _states_and_masks(checked, sites, seed)
    distributions = checked.log_probs(tokens, masked)
    _require_shape(distributions, (*tokens.shape, checked.vocab_size), model, "log_probs")
    there = distributions[masked].double()
    worst = float((there.logsumexp(-1).exp() - 1).abs().max())
    require(worst <= tolerance, model, f"returns probabilities whose sum differs from 1 by {worst:.3g}")
    others = torch.where(masked, (tokens + 1) % checked.vocab_size, tokens)
    moved = _distance(checked.log_probs(others, masked)[masked], there)
    require(
        moved <= tolerance,
        model,
        f"depends on masked tokens: other tokens change probabilities by {moved:.3g}",
    )
    rows = torch.arange(len(tokens), device=tokens.device).flip(0)[: max(1, len(tokens) // 3)]
    moved = _distance(
        checked.log_probs(tokens[rows], masked[rows])[masked[rows]], distributions[rows][masked[rows]]
    )
    require(
        moved <= tolerance, model, f"depends on the batch: other rows change probabilities by {moved:.3g}"
    )
    _check_sites(checked, tokens, tolerance)
    if distribution is not None:
        moved = _distance(
            there, conditional_log_probs(distribution, checked.vocab_size, tokens, masked)[masked]
        )
        require(
            moved <= tolerance, model, f"differs by {moved:.3g} from the conditionals of the distribution"
        )


def _check_sites(model: Masked, tokens: Tensor, tolerance: float) -> None:
    every_site = model.site_log_probs(tokens)
    _require_shape(every_site, (*tokens.shape, model.vocab_size), model, "site_log_probs")
    for site in range(tokens.shape[1]):
        alone = torch.zeros_like(tokens, dtype=torch.bool)
        alone[:, site] = True
        distribution = model.log_probs(tokens, alone)[:, site]
        weights = model.site_log_weights(tokens, torch.full_like(tokens[:, 0], site))
        _require_shape(weights, (len(tokens), model.vocab_size), model, "site_log_weights")
        for method, output in (("site_log_probs", every_site[:, site]), ("site_log_weights", weights)):
            moved = _distance(output.double().log_softmax(-1), distribution)
            message = f"{method} and log_probs of site {site} differ by {moved:.3g} in probability"
            require(moved <= tolerance, model, message)
    logits, own = model.site_logits(tokens), model.token_logits(tokens)
    _require_shape(own, tuple(tokens.shape), model, "token_logits")
    moved = _distance(logits.double().log_softmax(-1), every_site)
    require(
        moved <= tolerance,
        model,
        f"site_logits and site_log_probs differ by {moved:.3g} in probability",
    )
    apart = (own - logits.gather(2, tokens[:, :, None])[:, :, 0]).abs()
    moved = float(apart.nan_to_num(0.0).max())
    require(moved <= tolerance, model, f"token_logits and site_logits differ by {moved:.3g}")


def check_energy(model: Energy, *, sites: int | None = None, tolerance: float = 1e-9, seed: int = 0) -> None:
    """Check that an energy-based model satisfies the requirements for energies.

    The energy of a sequence must be a number or +inf and must not depend on the other rows. The conditional
    distributions of single sites must agree with the energies.

    Args:
        model: Model to check.
        sites: Number of sites N (default: the model's own number).
        tolerance: Largest difference of probabilities (default: 1e-9).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If a requirement is violated.
        InputError: If the model has no energies.
    """
    checked: Energy = _role(model, Energy)
    tokens, _ = _states_and_masks(checked, sites, seed)
    energies = checked.energy(tokens)
    _require_shape(energies, (len(tokens),), model, "energy")
    require(not bool(energies.isnan().any()), model, "has an energy that is NaN")
    require(
        bool((energies > -torch.inf).all()),
        model,
        "has an energy of -inf, for which no distribution exists",
    )
    possible = tokens[energies < torch.inf]
    require(len(possible) > 0, model, "has no sequence of finite energy")
    one_by_one = torch.cat([checked.energy(row[None]) for row in tokens[:8]])
    same = torch.allclose(one_by_one.double(), energies[:8].double(), rtol=1e-9, atol=tolerance)
    require(same, model, "has energies that depend on the other rows")
    for site in range(tokens.shape[1]):
        there = torch.full_like(possible[:, 0], site)
        distribution = block_distribution(checked, possible, there[:, None]).double().log_softmax(-1)
        moved = _distance(checked.site_log_weights(possible, there).double().log_softmax(-1), distribution)
        message = f"site_log_weights of site {site} and the energies differ by {moved:.3g} in probability"
        require(moved <= tolerance, model, message)


def check_joint(model: Joint, *, sites: int | None = None, tolerance: float = 1e-9, seed: int = 0) -> None:
    """Check that a model samples blocks of sites correctly.

    The exact distribution of `draw_block` is computed for a few states and blocks. Sites outside of the block
    must not change. The distribution must agree with the model's energies, its `block_log_weights`, or its
    masked conditionals (for blocks of one site), if it has one of these.

    Args:
        model: Model to check.
        sites: Number of sites N (default: the model's own number).
        tolerance: Largest difference of probabilities (default: 1e-9).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If a requirement is violated.
        InputError: If the model has no method `draw_block`.
    """
    checked: Joint = _role(model, Joint)
    every_state, _ = _states_and_masks(checked, sites, seed)
    tokens = every_state[torch.randperm(len(every_state), generator=generator(seed, "rows"))[:4]]
    number = tokens.shape[1]
    for size in range(1, number + 1):
        if checked.vocab_size**size > _BLOCK_STATES:
            break
        order = torch.rand(tokens.shape, generator=generator(seed, "blocks", size)).argsort(1)
        block_sites = order[:, :size].sort(1).values.to(tokens.device)
        block = torch.zeros_like(tokens, dtype=torch.bool).scatter_(1, block_sites, True)
        drawn = _block_distributions(checked, tokens, block)
        for row, distribution in enumerate(drawn):
            kept = (~block[row]).nonzero()[:, 0].tolist()
            before = tokens[row].tolist()
            changed = [x for x in distribution if any(x[site] != before[site] for site in kept)]
            require(not changed, model, f"changes sites outside of the block: {changed[:1]}")
        if not _defines_distribution(checked, tokens, block):
            continue
        expected = block_distribution(checked, tokens, block_sites).double().softmax(1).cpu()
        for row, distribution in enumerate(drawn):
            values = enumerate_sequences(checked.vocab_size, size)
            probabilities = [
                distribution.get(_with(tokens[row], block_sites[row], value), 0.0) for value in values
            ]
            branches = torch.tensor(probabilities, dtype=torch.float64)
            moved = float((branches - expected[row]).abs().max())
            message = (
                f"samples of the block {block_sites[row].tolist()} differ by {moved:.3g} in probability from the "
                "distribution that the model defines"
            )
            require(moved <= tolerance, model, message)


def conditional_log_probs(distribution: Tensor, vocab: int, tokens: Tensor, masked: Tensor) -> Tensor:
    """Compute the conditional distribution of each site given the unmasked sites, from a joint distribution.

    Args:
        distribution: Probabilities (V^N,) of all sequences of N sites, in the order of `itertools.product`.
        vocab: Number V of values of a site.
        tokens: Sequences (rows, N) int64.
        masked: Bool tensor (rows, N), True for masked sites. Their tokens are ignored.

    Returns:
        Log-probabilities (rows, N, V).
    """
    states = enumerate_sequences(vocab, tokens.shape[1])
    agree = ((tokens.cpu()[:, None] == states) | masked.cpu()[:, None]).all(2)
    here = torch.nn.functional.one_hot(states, vocab).double()
    marginals = torch.einsum("rs,siv->riv", agree * distribution.double().cpu(), here)
    return (marginals / marginals.sum(2, keepdim=True)).log()


def _block_distributions(model: Joint, tokens: Tensor, block: Tensor) -> list[dict[tuple[int, ...], float]]:
    """Return the exact distribution of `draw_block` for each row, by enumeration of all random choices."""
    distributions: list[dict[tuple[int, ...], float]] = [{} for _ in tokens]
    enumeration = Enumeration(len(tokens), 1)
    for weights, drawn in enumeration.branches(lambda: model.draw_block(tokens, block, enumeration.choose)):
        for distribution, weight, states in zip(distributions, weights.tolist(), drawn.tolist(), strict=True):
            if weight:
                distribution[tuple(states)] = distribution.get(tuple(states), 0.0) + weight
    return distributions


def _defines_distribution(model: SequenceModel, tokens: Tensor, block: Tensor) -> bool:
    """Return whether the model defines the distribution of the block."""
    if isinstance(model, Energy) or (isinstance(model, Masked) and int(block[0].sum()) == 1):
        return True
    return model.block_log_weights(tokens, block) is not None


def _with(tokens: Tensor, sites: Tensor, values: Tensor) -> tuple[int, ...]:
    return tuple(tokens.cpu().scatter(0, sites.cpu(), values).tolist())


def _states_and_masks(model: SequenceModel, sites: int | None, seed: int) -> tuple[Tensor, Tensor]:
    """Return sequences (rows, N) and random masks (rows, N) with at least one masked site each.

    All sequences are returned if there are at most `STATES`, else random ones.
    """
    vocab, number = int(model.vocab_size), number_of_sites(model, sites)
    if vocab**number <= STATES:
        tokens = enumerate_sequences(vocab, number)
    else:
        tokens = torch.randint(vocab, (STATES, number), generator=generator(seed, "tokens"))
    masked = torch.rand(tokens.shape, generator=generator(seed, "masked")) < 0.5
    masked[torch.arange(len(tokens)), torch.arange(len(tokens)) % number] = True
    device = model.device or "cpu"
    return tokens.to(device), masked.to(device)


def _role(model: SequenceModel, role: Any) -> Any:
    """Convert `model` to an instance of the base class `role`, such as `Masked`."""
    checked = as_model(model)
    if not isinstance(checked, role):
        raise InputError(
            "model",
            type(model).__name__,
            f"it is not an instance of `{role.__name__}`; define the methods of this class",
        )
    return checked


def _distance(outputs: Tensor, expected: Tensor) -> float:
    """Return the largest difference of probabilities, given as logarithms."""
    return float((outputs.double().exp().cpu() - expected.double().exp().cpu()).abs().max())


def _require_shape(output: Tensor, shape: tuple[int, ...], model: SequenceModel, method: str) -> None:
    require(output.shape == shape, model, f"{method} has the shape {tuple(output.shape)} instead of {shape}")
