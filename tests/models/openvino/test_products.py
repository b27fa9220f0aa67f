"""OpenVINO multiplies by the exact codes of every type of GGUF blocks, inside of the matrix product."""

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from models.openvino.test_codes import blocks_of
from trialogue.models.openvino.codes import stored_codes
from trialogue.models.openvino.decoder import Decoder, Linear
from trialogue.models.openvino.graph import DecoderGraph
from trialogue.randomness import numpy_generator

openvino = pytest.importorskip("openvino")
WIDTH = 512


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q4_K, Kind.Q5_0, Kind.Q6_K, Kind.Q8_0])
def test_a_product_has_the_weights_of_its_blocks(kind):
    blocks = blocks_of(kind, 64, WIDTH)
    decoder = Decoder(1, 1, 2, 1.0, 1e-5, [], np.ones(WIDTH, np.float32), Linear(stored_codes(blocks), None))
    settings = {
        "INFERENCE_NUM_THREADS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
    }
    compiled = openvino.Core().compile_model(DecoderGraph(decoder).head(), "CPU", settings)
    operators = {
        node.get_rt_info()["layerType"].astype(str) for node in compiled.get_runtime_model().get_ops()
    }
    assert operators == {"Input", "Const", "FullyConnected", "Output"}
    for rows in (1, 5):
        states = numpy_generator(rows, "states").normal(size=(rows, WIDTH)).astype(np.float32)
        expected = states @ blocks.weight().numpy().T
        assert np.abs(compiled(states)[0] - expected).max() < 1e-5 * np.abs(expected).max()
