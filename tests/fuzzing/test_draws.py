"""Fuzz tests of draws and truncations: each call raises an error of one line or agrees with NumPy."""

import math

import numpy as np
import torch
from hypothesis import strategies as st

from fuzzing.faults import HARMLESS, INDEX_FAULTS, Draw, fuzz, result_or_none
from trialogue.data.alias import alias_table
from trialogue.randomness import Streams, select_index
from trialogue.samplers.nucleus import leading, nucleus
from trialogue.samplers.prefix.contract.masking import mask_with_mass
from trialogue.samplers.prefix.contract.sampler import mask_tokens

WEIGHTS = (
    *HARMLESS,
    "float32",
    "half",
    "flat",
    "deep",
    "more rows",
    "one row",
    "infinite",
    "nan",
    "impossible",
)
NUMBERS = st.one_of(
    st.sampled_from([0.5, 0.9, 1.0, 1, 0.0, -1.0, 1.5, math.nan, math.inf, True, "0.5"]), st.floats(0, 1)
)


def log_weights(draw: Draw, rows: int, columns: int) -> torch.Tensor:
    """Return log-weights (rows, columns), some of them -inf, with the fault of this case."""
    weights = draw.floats((rows, columns)) * 3
    weights[draw.floats((rows, columns)) > 1] = -math.inf
    if columns:
        weights[:, draw.integer(0, columns - 1)] = 0.3
    special = {"infinite": math.inf, "nan": math.nan}
    if draw.fault in special and weights.numel():
        weights[draw.integer(0, rows - 1), draw.integer(0, columns - 1)] = special[draw.fault]
    if draw.fault == "impossible" and rows:
        weights[draw.integer(0, rows - 1)] = -math.inf
    dtypes = {"float32": torch.float32, "half": torch.float16}
    return draw.with_tensor_fault(weights.to(dtypes.get(draw.fault, torch.float64)))


def is_inverse(index: int, uniform: float, weights: np.ndarray) -> bool:
    """Return whether inversion of the CDF maps `uniform` to `index`, up to rounding."""
    probs = np.exp(weights - weights.max())
    probs /= probs.sum()
    before, after = probs[:index].sum(), probs[: index + 1].sum()
    return bool(probs[index] > 0 and before - 1e-6 <= uniform <= after + 1e-6)


@fuzz(INDEX_FAULTS)
def test_streams_return_the_same_numbers_in_any_batch(draw):
    streams, plain = (Streams(draw.integer(0, 0), torch.arange(7) * 3) for _ in range(2))
    rows = draw.with_index_fault(draw.indices((draw.integer(1, 70),), 7), 7)
    uniform = result_or_none(lambda: streams.uniform(rows))
    assert (uniform is None) == (
        draw.fault not in ("nothing", "strided", "no rows", "more rows", "one row", "fewer columns")
    )
    if uniform is None:
        assert torch.equal(streams.counters, plain.counters)
        return
    assert bool(((uniform >= 0) & (uniform < 1)).all())
    for row, number in zip(rows.tolist(), uniform.tolist(), strict=True):
        assert number == float(plain.uniform(torch.tensor([row])))


@fuzz(tuple({*WEIGHTS, *INDEX_FAULTS}), st.booleans())
def test_choices_of_streams_invert_the_cdf(draw, weights_are_wrong):
    number, columns = (
        draw.integer(1, 9),
        draw.integer(0, 300) if draw.integer(0, 4) == 0 else draw.integer(1, 6),
    )
    rows, valid_draw = draw.indices((number,), 7), Draw(draw.integer(0, 99), "nothing")
    weights = log_weights(draw if weights_are_wrong else valid_draw, number, columns)
    if not weights_are_wrong:
        rows = draw.with_index_fault(rows, 7)
    streams, plain = (Streams(3, torch.arange(7)) for _ in range(2))
    index = result_or_none(lambda: streams.choose(weights, rows), draw.fault == "nothing" and columns > 0)
    if index is None:
        return
    assert index.shape == (len(rows),)
    for place, row in enumerate(rows.tolist()):
        uniform = float(plain.uniform(torch.tensor([row])))
        assert is_inverse(int(index[place]), uniform, weights[place].double().numpy())
    if len(rows):
        assert torch.equal(streams.counters, plain.counters)


@fuzz(WEIGHTS, st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, -0.1, 1.1, math.nan, math.inf])))
def test_indices_invert_the_cdf(draw, uniform):
    rows, columns = draw.integer(1, 6), draw.integer(0, 9)
    weights = log_weights(draw, rows, columns)
    index = result_or_none(lambda: select_index(torch.full((rows,), uniform, dtype=torch.float64), weights))
    if not 0 <= uniform <= 1:
        assert index is None
    elif draw.fault in ("nothing", "strided", "float32") and columns:
        assert index is not None
    for place in range(0 if index is None else rows):
        assert is_inverse(int(index[place]), uniform, weights[place].double().numpy())


def is_cut(cut: np.ndarray, log_probs: np.ndarray, top_k: int | None, top_p: float) -> bool:
    """Return whether `cut` is one row after top-k, top-p and normalisation, up to rounding."""
    order = np.argsort(-log_probs, kind="stable")
    probs = np.exp(log_probs[order] - log_probs.max())[:top_k]
    probs /= probs.sum()
    kept = int(np.isfinite(cut).sum())
    before = probs[: kept - 1].sum()
    enough = kept == len(probs) or before + probs[kept - 1] >= top_p - 1e-5 or not probs[kept]
    is_prefix = bool(np.isfinite(cut[order[:kept]]).all())
    expected = log_probs[order[:kept]] - np.log(np.exp(log_probs[order[:kept]]).sum())
    return (
        is_prefix
        and before <= top_p + 1e-5
        and enough
        and bool(np.abs(cut[order[:kept]] - expected).max() < 1e-4)
    )


@fuzz(WEIGHTS, st.one_of(st.none(), st.integers(-1, 9), st.sampled_from([2.0, "3"])), NUMBERS)
def test_truncations_of_small_vocabularies_are_correct(draw, top_k, top_p):
    rows, vocab = draw.integer(1, 5), draw.integer(0, 9)
    distributions = log_weights(draw, rows, vocab)
    cut = result_or_none(lambda: leading(distributions, top_k, top_p))
    right_k = top_k is None or (isinstance(top_k, int) and top_k >= 1)
    right_p = isinstance(top_p, int | float) and not isinstance(top_p, bool) and 0 < top_p <= 1
    if (
        not right_k
        or not right_p
        or draw.fault in ("half", "flat", "deep", "int32", "infinite", "nan", "impossible")
    ):
        assert cut is None or (draw.fault in ("infinite", "nan", "impossible") and not distributions.numel())
    elif vocab:
        assert cut is not None
    for row in range(0 if cut is None else len(distributions)):
        assert is_cut(cut[row].double().numpy(), distributions[row].double().numpy(), top_k, top_p)


@fuzz(WEIGHTS, NUMBERS)
def test_the_nucleus_of_large_vocabularies_is_correct(draw, top_p):
    rows, vocab = draw.integer(1, 4), draw.integer(0, 80)
    distributions = log_weights(draw, rows, vocab)
    distributions = (
        distributions.float()
        if distributions.dtype == torch.float64 and draw.integer(0, 9)
        else distributions
    )
    cut = result_or_none(lambda: nucleus(distributions, top_p))
    right_p = isinstance(top_p, int | float) and not isinstance(top_p, bool) and 0 < top_p <= 1
    if not right_p or distributions.dtype != torch.float32 or distributions.ndim != 2:
        assert cut is None
    elif vocab and draw.fault not in ("infinite", "nan", "impossible"):
        assert cut is not None
    for row in range(0 if cut is None else len(distributions)):
        assert is_cut(cut[row].double().numpy(), distributions[row].double().numpy(), None, top_p)


@fuzz(WEIGHTS, st.sampled_from(["bool", "int64", "narrow", "flat"]))
def test_masked_distributions_are_correct(draw, kind):
    rows, vocab = draw.integer(0, 4), draw.integer(0, 6)
    distributions, allowed = log_weights(draw, max(1, rows), vocab), draw.floats((max(1, rows), vocab)) > 0
    allowed = (
        draw.with_tensor_fault(allowed) if draw.fault in ("no rows", "more rows", "one row") else allowed
    )
    mask = {"bool": allowed, "int64": allowed.long(), "narrow": allowed[:, 1:], "flat": allowed.flatten()}[
        kind
    ]
    valid = draw.fault in ("nothing", "strided", "no rows", "more rows", "one row", "float32")
    found = result_or_none(lambda: mask_tokens(distributions, mask), kind == "bool" and valid)
    if found is not None:
        expected = torch.where(mask, distributions, -math.inf)
        masked, mass = mask_with_mass(distributions, mask)
        for result in (found, masked):
            assert torch.equal(result.nan_to_num(7), expected.nan_to_num(7))
        assert torch.allclose(mass, expected.double().logsumexp(1), rtol=0, atol=1e-5, equal_nan=True)


@fuzz((*WEIGHTS, "negative", "too much", "nothing at all"), st.integers(-1, 70), st.integers(-1, 70))
def test_alias_tables_have_the_given_distribution(draw, coin_bits, alias_bits):
    contexts, vocab = draw.integer(1, 4), draw.integer(1, 9)
    distribution = log_weights(draw, contexts, vocab).float().softmax(-1).double().numpy()
    changes = {
        "negative": lambda: distribution - 0.5,
        "too much": lambda: distribution * 1.01,
        "nothing at all": lambda: distribution * 0,
    }
    distribution = changes.get(draw.fault, lambda: distribution)()
    if draw.integer(0, 1):
        alias_bits, coin_bits = (vocab - 1).bit_length(), 40
    fits = coin_bits == 40 and alias_bits == (vocab - 1).bit_length()
    valid = fits and draw.fault in ("nothing", "strided", "one row")
    entries = result_or_none(lambda: alias_table(distribution, coin_bits, alias_bits), valid)
    if entries is None:
        return
    assert entries.shape == distribution.shape
    keeps = (entries >> np.uint64(alias_bits)).astype(np.float64) / 2.0**coin_bits
    aliases = (entries & np.uint64(2**alias_bits - 1)).astype(np.int64)
    assert bool((aliases < vocab).all())
    found = np.zeros(distribution.shape)
    for row in range(len(distribution)):
        for column in range(vocab):
            kept = 1.0 if aliases[row, column] == column else keeps[row, column]
            found[row, column] += kept / vocab
            found[row, aliases[row, column]] += (1 - kept) / vocab
    assert not distribution.size or np.abs(found - distribution).max() <= vocab * 2.0**-coin_bits + 1e-6
