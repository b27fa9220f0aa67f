"""Products of every format with its rounded weights, and the size of rounding errors."""

import pytest
import torch
from torch import Tensor

from refusals import expect_error
from trialogue.models.packed import formats
from trialogue.models.packed.formats import (
    FORMATS,
    GROUP_SIZE,
    available_formats,
    quantise_int4,
    quantise_int8,
    require_format,
    select_fitting_format,
)
from trialogue.randomness import generator

OUT, IN = 48, 96
# Products are summed in float32 and rounded to the dtype of the states.
ROUNDING = {"float32": 1e-5, "bfloat16": 2**-8, "int8": 2**-8, "int4": 2**-8}


def random_tensor(*shape: int) -> Tensor:
    return torch.randn(shape, generator=generator(len(shape), "formats", *shape))


def error(name: str, weight: Tensor, bias: Tensor | None, rows: int) -> float:
    """Return the largest difference from the product with the rounded weight, relative to the largest result."""
    form, states = FORMATS[name], random_tensor(rows, weight.shape[1])
    rounded_states = states.to(form.states).double()
    expected = rounded_states @ form.round(weight).double().T
    if bias is not None:
        expected += bias.to(form.states).double()
    with torch.inference_mode():
        product = form.pack(weight, bias)(states.to(form.states)).double()
    return float((product - expected).abs().max() / expected.abs().max())


@pytest.fixture(params=list(FORMATS))
def name(request):
    if request.param not in available_formats():
        pytest.skip(f"this machine does not multiply {request.param}")
    return str(request.param)


@pytest.mark.parametrize("rows", [1, 3, 4, 17])
@pytest.mark.parametrize("biased", [False, True], ids=["", "bias"])
def test_products_equal_those_of_the_rounded_weights(name, rows, biased):
    bias = random_tensor(OUT) if biased else None
    assert error(name, random_tensor(OUT, IN), bias, rows) < 2 * ROUNDING[name]


def test_states_may_have_any_memory_layout(name):
    form, weight, states = (
        FORMATS[name],
        random_tensor(OUT, IN),
        random_tensor(IN, 5).to(FORMATS[name].states),
    )
    product = form.pack(weight, None)
    assert torch.equal(product(states.T), product(states.T.contiguous()))


def test_a_transposed_layout_is_detected(name, monkeypatch):
    form = FORMATS[name]
    transposed = form._replace(pack=lambda weight, bias: form.pack(weight.T.contiguous(), bias))
    monkeypatch.setitem(FORMATS, name, transposed)
    assert error(name, random_tensor(IN, IN), None, 4) > 0.2


def test_rounding_errors_are_at_most_half_a_step():
    weight = random_tensor(OUT, IN)
    codes, scales = quantise_int8(weight)
    assert codes.abs().max() <= 127
    # The scale is rounded to 8 bits, so that the last code can be below the largest weight by the same factor.
    steps = scales.float()[:, None]
    assert ((FORMATS["int8"].round(weight) - weight).abs() <= steps / 2 + 127 * steps * 2**-8).all()
    codes, pairs = quantise_int4(weight)
    assert (int(codes.min()), int(codes.max())) == (0, 15)
    steps = pairs[..., 0].T.float().repeat_interleave(GROUP_SIZE, 1)
    offsets = pairs[..., 1].T.float().repeat_interleave(GROUP_SIZE, 1)
    slack = 8 * steps * 2**-8 + offsets.abs() * 2**-8
    assert ((FORMATS["int4"].round(weight) - weight).abs() <= steps / 2 + slack).all()


@pytest.mark.parametrize("weight", [torch.zeros(16, 32), torch.full((16, 32), 3.0)], ids=["zeros", "equal"])
def test_constant_weights_keep_their_value(weight):
    for form in FORMATS.values():
        assert torch.allclose(form.round(weight), weight, rtol=2**-7, atol=1e-30)


def test_a_wider_format_is_used_for_unsupported_shapes():
    assert select_fitting_format("int4", torch.Size((48, 96))).name == "int4"
    assert select_fitting_format("int4", torch.Size((40, 96))).name == "int8"
    assert select_fitting_format("int4", torch.Size((48, 80))).name == "bfloat16"
    assert select_fitting_format("float32", torch.Size((3, 5))).name == "float32"


def test_unknown_and_unavailable_formats_are_reported(monkeypatch):
    expect_error(r"weights.*int3.*auto, float32, bfloat16, int8, int4", require_format, "int3")

    def absent(weight: Tensor, bias: Tensor | None) -> formats.Product:
        raise RuntimeError("no kernel")

    available_formats.cache_clear()
    monkeypatch.setitem(FORMATS, "int8", FORMATS["int8"]._replace(pack=absent))
    try:
        assert "int8" not in available_formats()
        expect_error(r"int8.*cannot multiply this format; use one of float32", require_format, "int8")
    finally:
        available_formats.cache_clear()
