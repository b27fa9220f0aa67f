"""Compiled Gibbs sampling of Ising models for `run_chain`, with the same random numbers as `Gibbs.step`.

Each chain reads its random stream in the same order as `Gibbs.step`. The sum of couplings at a site includes its
neighbours only, so weights may differ from those of `Gibbs.step` in the last bits. A token then differs if a uniform
random number falls between the two weights, about once in 10^15 updates.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from trialogue.compilation import compiled, run_over_rows
from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue.indices import index_tensor
from trialogue.oracles import Sequences
from trialogue.randomness import Streams, next_uniform
from trialogue.samplers.chains.chain import KERNELS, Advance
from trialogue.samplers.chains.gibbs import Gibbs
from trialogue.validation import Natural, check

MAX_SITES = 4096
"""Largest number of sites. Larger models use `Gibbs.step`, which needs no matrix of couplings."""


@compiled
def draw_token(uniform: float, log_odds: float) -> int:
    """Draw one of two tokens, given the log-odds of token 1 and a uniform random number.

    The cumulative weights are rounded as in `select_index`.

    Args:
        uniform: A uniform random number in [0, 1).
        log_odds: Logarithm of p(1) / p(0).

    Returns:
        0 or 1.
    """
    lesser = np.exp(-abs(log_odds))
    zero, one = (lesser, 1.0) if log_odds > 0 else (1.0, lesser)
    return 0 if one == 0 or (zero > 0 and zero > uniform * (zero + one)) else 1


@compiled
def step_rows(
    first: int,
    last: int,
    tokens: NDArray[np.int64],
    keys: NDArray[np.int64],
    counters: NDArray[np.int64],
    begin: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    couplings: NDArray[np.float64],
    field: NDArray[np.float64],
    steps: int,
    sweep: bool,
) -> None:
    """Advance some of the chains on an Ising model by several Gibbs steps, in place.

    The neighbours of site i and its couplings are the entries from `begin[i]` to `begin[i + 1]` of `neighbours` and
    `couplings`.

    Args:
        first: Index of the first chain (row) to advance.
        last: Index after the last chain to advance.
        tokens: Tokens (rows, N), 0 and 1. Modified in place.
        keys: Keys (rows,) of the random streams.
        counters: Counters (rows,) of the random streams. Modified in place.
        begin: First entry (N + 1,) of each site in the following arrays.
        neighbours: Neighbours of all sites, concatenated.
        couplings: Couplings to these neighbours.
        field: External field (N,).
        steps: Number of steps.
        sweep: Whether a step updates every site in order, or one random site.
    """
    sites = len(field)
    updates = steps * sites if sweep else steps
    for row in range(first, last):
        spins = tokens[row]
        for update in range(updates):
            uniform = 0.0 if sweep else next_uniform(keys, counters, row)
            site = update % sites if sweep else min(int(uniform * sites), sites - 1)
            local = 0.0
            for place in range(begin[site], begin[site + 1]):
                local += couplings[place] * (2 * spins[neighbours[place]] - 1)
            uniform = next_uniform(keys, counters, row)
            spins[site] = draw_token(uniform, 2 * (local + field[site]))


def gibbs_kernel(chain: Gibbs, model: Ising) -> Advance | None:
    """Return a compiled function for several steps of Gibbs sampling, if one is available.

    The function runs on `torch.get_num_threads()` threads.

    Args:
        chain: The chain.
        model: The Ising model.

    Returns:
        A function that takes several steps, or None for models with more than `MAX_SITES` sites and for devices other
        than the CPU.
    """
    if model.sites > MAX_SITES or model.device.type != "cpu":
        return None
    site, neighbours = model.coupling.nonzero().unbind(1)
    begin = torch.searchsorted(site, torch.arange(model.sites + 1))
    table = (begin, neighbours, model.coupling[site, neighbours], model.field)
    arrays = [tensor.contiguous().numpy() for tensor in table]
    sweep = chain.order == "sweep"
    width = model.sites if sweep else 1

    def advance(state: Sequences, streams: Streams, steps: int) -> tuple[Sequences, None]:
        hint = f"give tokens 0 and 1 of shape (rows, {model.sites})"
        checked = index_tensor(
            "tokens", state.tokens, (None, model.sites), 2, shape_hint=hint, range_hint=hint
        )
        if len(streams.keys) != len(checked):
            raise InputError("streams", len(streams.keys), f"give one stream for each of {len(checked)} rows")
        check("steps", steps, Natural)
        state = Sequences(checked)
        tokens = state.tokens.clone(memory_format=torch.contiguous_format)
        drawing = (tokens.numpy(), streams.keys.numpy(), streams.counters.numpy())
        run_over_rows(step_rows, len(tokens), width * steps, *drawing, *arrays, steps, sweep)
        return Sequences(tokens), None

    return advance


KERNELS[Gibbs, Ising] = gibbs_kernel
