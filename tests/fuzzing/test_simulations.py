"""Fuzz tests of compiled chains: each call raises an error of one line or agrees with a slow loop."""

import numpy as np
import torch
from hypothesis import strategies as st

from fuzzing.faults import INDEX_FAULTS, Draw, fuzz, result_or_none
from samplers.chains.simulation.reference_kernels import heat_bath
from trialogue.data import Ising
from trialogue.data.site_tables import SiteTables, make_alias_entries, probability_thresholds
from trialogue.oracles import Sequences
from trialogue.randomness import Streams
from trialogue.samplers import Gibbs
from trialogue.samplers.chains.kernels import gibbs_kernel
from trialogue.samplers.chains.simulation.heat_bath import HeatBath
from trialogue.samplers.chains.simulation.multispin import Multispin

ISING = Ising(
    torch.tensor([[0.0, 0.3, -0.7], [0.3, 0.0, 0.2], [-0.7, 0.2, 0.0]]), torch.tensor([0.1, -0.4, 0.2])
)
RING = Ising(torch.ones(4, 4).fill_diagonal_(0) * 0.2, torch.tensor([0.1, -0.4, 0.2, 0.0]))
ARRAYS = ("neighbours", "strides", "offsets", "entries", "vocab_size")
TABLE_FAULTS = (
    "nothing",
    "nothing",
    "nothing",
    "negative",
    "too high",
    "far too high",
    "type",
    "flat",
    "short",
    "list",
)


@fuzz(
    INDEX_FAULTS, st.sampled_from(["random", "sweep"]), st.sampled_from([-1, 0, 1, 3, 2.0]), st.integers(0, 3)
)
def test_gibbs_steps_of_ising_models_are_correct(draw, order, steps, fewer_streams):
    rows = draw.integer(1, 5)
    start = draw.with_index_fault(draw.indices((rows, 3), 2), 2)
    number = max(0, start.shape[0] if start.ndim else 0) - (fewer_streams == 3)
    if number < 0:
        return
    chain, ids = Gibbs(order), torch.arange(number)
    fast, plain = Streams(5, ids), Streams(5, ids)
    advance = gibbs_kernel(chain, ISING)
    assert advance is not None
    after = result_or_none(lambda: advance(Sequences(start), fast, steps))
    is_right = isinstance(steps, int) and steps >= 0 and fewer_streams != 3
    if not is_right:
        assert after is None
    elif draw.fault in ("nothing", "strided", "int32", "no rows"):
        assert after is not None
    if after is None:
        return
    state = Sequences(start.long())
    for _ in range(steps if len(start) else 0):
        state, _ = chain.step(ISING, state, plain.choose)
    assert torch.equal(after[0].tokens, state.tokens)
    assert torch.equal(fast.counters, plain.counters)


def tables_of(draw: Draw) -> dict[str, object]:
    """Return arguments of `SiteTables` for sites with random neighbours."""
    sites, vocab, near = draw.integer(1, 4), draw.integer(2, 4), draw.integer(0, 2)
    distributions = sites * vocab**near
    distribution = np.exp(draw.floats((distributions, vocab)).numpy())
    distribution /= distribution.sum(1, keepdims=True)
    size = vocab if vocab > 2 else 1
    strides = np.tile(size * vocab ** np.arange(near), (sites, 1))
    return {
        "neighbours": draw.indices((sites, near), sites).numpy(),
        "strides": strides.astype(np.uint32),
        "offsets": (size * vocab**near * np.arange(sites)).astype(np.uint32),
        "entries": make_alias_entries(distribution)
        if vocab > 2
        else probability_thresholds(distribution[:, 1]),
        "vocab_size": vocab,
    }


@fuzz(TABLE_FAULTS, st.sampled_from(ARRAYS), st.integers(-1, 200), st.integers(-1, 3))
def test_heat_bath_of_random_tables_is_correct(draw, field, chains, sweeps):
    arguments = tables_of(draw)
    array = arguments[field]
    if isinstance(array, np.ndarray) and array.size:
        spot = draw.integer(0, array.size - 1)
        outside = {"negative": -1, "too high": 1 + int(array.max()), "far too high": 2**31 + 5}
        if draw.fault in outside:
            array.reshape(-1)[spot] = np.array(outside[draw.fault]).astype(array.dtype)
        changes = {
            "type": array.astype(np.float64),
            "flat": array.ravel(),
            "short": array[:-1],
            "list": array.tolist(),
        }
        arguments[field] = changes.get(draw.fault, array)
    elif draw.fault != "nothing":
        arguments[field] = {"too high": 33, "type": 2.0, "negative": -1}.get(draw.fault, array)
    tables = result_or_none(lambda: SiteTables(**arguments), draw.fault == "nothing")
    if tables is None:
        return
    simulation = result_or_none(lambda: HeatBath(tables, chains, 3))
    assert (simulation is not None) == (chains >= 1)
    if simulation is None:
        return
    done = result_or_none(lambda: simulation.advance(sweeps) or True)
    assert bool(done) == (sweeps >= 0)
    tokens = simulation.tokens
    assert tokens.shape == (chains, tables.sites)
    assert bool((tokens < tables.vocab_size).all())
    last = chains - 1
    with np.errstate(over="ignore"):
        assert tokens[last].tolist() == heat_bath(tables, last, 3, max(0, sweeps))


@fuzz(INDEX_FAULTS, st.sampled_from(["heat-bath", "multispin"]), st.integers(-1, 70), st.integers(-1, 2))
def test_chains_start_at_the_given_tokens(draw, method, chains, sweeps):
    start = draw.with_index_fault(draw.indices((max(chains, 1), 4), 2), 2)
    kind = HeatBath if method == "heat-bath" else Multispin
    valid = draw.fault in ("nothing", "strided", "int32") and chains >= 1
    simulation = result_or_none(lambda: kind(RING, chains, 1, start), valid)
    if simulation is None:
        return
    assert torch.equal(simulation.tokens, start.long())
    assert bool(result_or_none(lambda: simulation.advance(sweeps) or True)) == (sweeps >= 0)
    assert bool(((simulation.tokens == 0) | (simulation.tokens == 1)).all())
