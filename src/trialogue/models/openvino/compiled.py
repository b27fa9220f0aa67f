"""Compiled graphs of a decoder, and forward passes with a paged key-value cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.extras import from_extra
from trialogue.models.openvino.decoder import Decoder
from trialogue.models.openvino.graph import SEQUENCE_INPUTS, DecoderGraph
from trialogue.models.openvino.paged_cache import BLOCK_SIZE, BlockPool, PagedCache

_STORED = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}


class CompiledDecoder:
    """Decoder and output head, compiled by OpenVINO for the CPU with the current number of threads of torch.

    Args:
        decoder: Sizes and weights, which are not kept.
        read: Function that returns the decoder once more, for contexts that record hidden states.
        precise: Compute in float32, even if the processor has faster products in bfloat16.
    """

    def __init__(self, decoder: Decoder, read: Callable[[], Decoder], precise: bool) -> None:
        self._ov = from_extra("openvino", "openvino")
        self._read = read
        self._stores, self._block_shape = (
            2 * len(decoder.blocks),
            (decoder.key_heads, BLOCK_SIZE, decoder.head_size),
        )
        core = self._ov.Core()
        default = core.get_property("CPU", "INFERENCE_PRECISION_HINT").get_type_name()
        self.precision = "f32" if precise or default == "dynamic" else default
        self._settings = {
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
            "NUM_STREAMS": 1,
            # Processes with one thread each would otherwise share one core.
            "ENABLE_CPU_PINNING": False,
            "INFERENCE_PRECISION_HINT": self.precision,
            # In the default of 8 bits, the keys of a block share scales, which depend on removed tokens too.
            "KV_CACHE_PRECISION": self.precision,
            # Rounded activations would change the distributions more than the codes of the weights.
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        }
        self._core = core
        graph = DecoderGraph(decoder)
        self._head = self._compile(graph.head()).create_infer_request()
        self._bodies: dict[tuple[int, ...], _Body] = {(): _Body(self._compile(graph.body()))}

    def logits(self, states: Tensor) -> Tensor:
        """Map hidden states (n, width) float32 to logits (n, vocab) float32."""
        _infer(self._head, {"states": self._ov.Tensor(states.contiguous().numpy(), shared_memory=True)})
        return torch.from_numpy(self._head.get_output_tensor(0).data.copy())

    def body(self, layers: tuple[int, ...]) -> _Body:
        """Return the decoder without its head, which also returns the residual streams after `layers`."""
        if layers not in self._bodies:
            self._bodies[layers] = _Body(self._compile(DecoderGraph(self._read()).body(layers)))
        return self._bodies[layers]

    def pool(self, blocks: int) -> BlockPool:
        """Return memory for the keys and values of a number of blocks."""
        return BlockPool(self._stores, self._block_shape, _STORED[self.precision], blocks)

    def _compile(self, graph: Any) -> Any:
        return self._core.compile_model(graph, "CPU", self._settings)


class _Body:
    """Compiled decoder without its head, bound to the memory of the pool of the last pass."""

    def __init__(self, compiled: Any) -> None:
        self._ov = from_extra("openvino", "openvino")
        self._request = compiled.create_infer_request()
        self._caches = [port for port in compiled.inputs if "_cache." in port.get_any_name()]
        self._outputs = len(compiled.outputs)
        self._bound: NDArray[Any] | None = None

    def run(
        self,
        embeddings: Tensor,
        rotation: Tensor,
        cache: PagedCache,
        rows: NDArray[np.int64],
        first: NDArray[np.int64],
        stop: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> Tensor:
        """Evaluate positions `first` to `stop - 1` of some rows, and store their keys and values.

        Args:
            embeddings: Embeddings (tokens, width) float32 of the tokens of all rows, row after row.
            rotation: Cosines and sines (2, tokens, head size) float32 of their positions.
            cache: Cache whose blocks have been prepared.
            rows: Rows (n,) of the cache.
            first: First position (n,) of each row. Earlier positions are cached.
            stop: Position (n,) after the last one of each row.
            last: Indices (k,) of the tokens whose states are returned.

        Returns:
            Input of the output head, followed by the recorded residual streams, (k, width * (1 + layers)) float32.
        """
        self._bind(cache.pool)
        blocks = -(-stop // BLOCK_SIZE)
        tables = cache.tables[rows, : int(blocks.max())]
        tables = tables[np.arange(tables.shape[1]) < blocks[:, None]]
        if int(tables.min()) < 0:
            raise ValueError("positions before the first one of a row are not cached")
        sequences = (
            first,
            np.concatenate([[0], (stop - first).cumsum()]),
            tables,
            np.concatenate([[0], blocks.cumsum()]),
        )
        integers = dict(zip(SEQUENCE_INPUTS, sequences, strict=True)) | {
            "last": last,
            "max_context_len": np.array(stop.max()),
        }
        arrays = {name: np.asarray(values, np.int32, order="C") for name, values in integers.items()}
        cosines, sines = rotation
        states = {"embeddings": embeddings, "cosines": cosines, "sines": sines}
        arrays |= {name: values.numpy() for name, values in states.items()}
        _infer(
            self._request,
            {name: self._ov.Tensor(array, shared_memory=True) for name, array in arrays.items()},
        )
        outputs = [self._request.get_output_tensor(number).data for number in range(self._outputs)]
        return torch.from_numpy(np.concatenate(outputs, 1) if len(outputs) > 1 else outputs[0].copy())

    def _bind(self, pool: BlockPool) -> None:
        """Give the memory of a pool to the request, unless it has it already."""
        if pool.memory is self._bound:
            return
        self._bound = pool.memory
        for port in self._caches:
            kind, number = port.get_any_name().split("_cache.")
            store = pool.memory[2 * int(number) + (kind == "value")]
            self._request.set_tensor(port, self._ov.Tensor(store, store.shape, port.get_element_type()))


def _infer(request: Any, tensors: dict[str, Any]) -> None:
    """Run a request. Its method `infer` would ignore errors of the operators."""
    for name, tensor in tensors.items():
        request.set_tensor(name, tensor)
    request.start_async()
    request.wait()
