"""Causal language models from GGUF files, whose linear layers stay quantised until they are packed.

transformers dequantises all weights, and reads the vocabulary three times, which takes most of its loading time. This
module uses its configurations and model classes, but reads the weights from the file.
"""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from accelerate import init_empty_weights
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType
from torch import Tensor, nn

from trialogue.errors import InputError, first_line
from trialogue.models.packed.gguf_blocks import GgufBlocks

_SUPPORTED = {"llama", "qwen2", "qwen3", "gemma3"}
"""Architectures whose tensors can be converted from the layout of llama.cpp to the layout of transformers."""


# Arrays with more entries belong to the vocabulary.
_LONG_ARRAY = 1024


class _Reader(GGUFReader):
    """GGUF reader that skips vocabularies, because the base class creates several arrays for each token."""

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
        stored = self.data.data
        if raw_type == GGUFValueType.ARRAY and self.byte_order == "I":
            element_type, count = struct.unpack_from("<IQ", stored, orig_offs)
            scalar_type = self.gguf_scalar_to_np.get(element_type)
            offset = orig_offs + 12
            if count > _LONG_ARRAY and element_type in (GGUFValueType.STRING, *self.gguf_scalar_to_np):
                if scalar_type is not None:
                    offset += count * np.dtype(scalar_type).itemsize
                else:
                    for _ in range(count):
                        offset += 8 + struct.unpack_from("<Q", stored, offset)[0]
                return (
                    offset - orig_offs,
                    [np.array([count])],
                    [],
                    [GGUFValueType.ARRAY, GGUFValueType(element_type)],
                )
        return super()._get_field_parts(orig_offs, raw_type)


class GgufFile:
    """Metadata and tensors of a GGUF file.

    Args:
        path: Path of the file.

    Raises:
        InputError: If the file is damaged, or if a tensor has a type that cannot be dequantised.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            reader = _Reader(path)
            self._fields = reader.fields
            self._architecture = str(self._fields["general.architecture"].contents())
        except (ValueError, KeyError, IndexError, OverflowError, struct.error) as error:
            hint = f"it cannot be read as GGUF ({first_line(error)}). Download it again"
            raise InputError("model", str(path), hint) from error
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        for kind in {tensor.tensor_type for tensor in reader.tensors}:
            _require_readable(path, kind, next(t.name for t in reader.tensors if t.tensor_type == kind))

    @property
    def elements(self) -> int:
        """Total number of elements of all tensors."""
        return sum(int(tensor.n_elements) for tensor in self._tensors.values())

    def is_supported(self) -> bool:
        """Return whether `config` and `model` support the architecture of this file."""
        return self._architecture in _SUPPORTED

    def config(self) -> Any:
        """Return the transformers configuration of the model."""
        import transformers

        # transformers would read the complete file. It is given a copy of the metadata without vocabulary and weights.
        with tempfile.TemporaryDirectory() as folder:
            writer = gguf.GGUFWriter(Path(folder) / "config.gguf", self._architecture)
            for name, field in self._fields.items():
                if name.startswith("GGUF.") or name == "general.architecture" or not field.data:
                    continue
                element_type = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
                writer.add_key_value(name, field.contents(), field.types[0], element_type)
            tokens = self._fields.get("tokenizer.ggml.tokens")
            if (
                f"{self._architecture}.vocab_size" not in self._fields
                and tokens is not None
                and not tokens.data
            ):
                writer.add_vocab_size(int(tokens.parts[-1][0]))
            for name in self._tensors:
                writer.add_tensor(name, np.zeros(1, np.float32))
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            config = transformers.AutoConfig.from_pretrained(folder, gguf_file="config.gguf")
        config.name_or_path = str(self._path.parent)
        return config

    def model(self, config: Any) -> tuple[Any, dict[nn.Module, GgufBlocks]]:
        """Create the transformers model without dequantising its linear layers.

        Args:
            config: Configuration of the model, from `config`.

        Returns:
            The model, and the quantised blocks of each linear layer. The weights of these layers are on the meta
            device. All other parameters, including the input embeddings, are in float32 on the CPU.

        Raises:
            InputError: If a weight is missing or has a wrong shape.
        """
        import transformers

        with init_empty_weights(include_buffers=False):
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        model.tie_weights()
        names = self._parameter_names(model, config)
        modules = dict(model.named_modules())
        blocks: dict[nn.Module, GgufBlocks] = {}
        for name, parameter in list(model.named_parameters()):
            stored = self._tensor_blocks(names[name], config)
            offset, _, kind = name.rpartition(".")
            module = modules[offset]
            shape = (*stored.data.shape[:-1], _columns(stored))
            if shape != tuple(parameter.shape):
                hint = (
                    f"its tensor {names[name]} has the shape {shape}, but its configuration requires "
                    f"{tuple(parameter.shape)}. Use another file"
                )
                raise InputError("model", str(self._path), hint)
            if type(module) is nn.Linear and kind == "weight":
                blocks[module] = stored
            else:
                setattr(module, kind, nn.Parameter(self._weight(stored, name), requires_grad=False))
        head, embeddings = model.get_output_embeddings(), model.get_input_embeddings()
        if head not in blocks:
            model.tie_weights()
            blocks[head] = self._tensor_blocks(names[_module_name(model, embeddings) + ".weight"], config)
        return model.eval(), blocks

    def _parameter_names(self, model: nn.Module, config: Any) -> dict[str, str]:
        """Return the name in the file of every parameter of `model`."""
        kind = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == self._architecture)
        table = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
        names = {}
        for name, _ in model.named_parameters():
            stem, _, suffix = name.rpartition(".")
            names[name] = f"{table.get_name(stem)}.{suffix}"
        missing = [name for name, stored in names.items() if stored not in self._tensors]
        if missing:
            lacking = ", ".join(missing[:2]) + (f" and {len(missing) - 2} more" if len(missing) > 2 else "")
            raise InputError("model", str(self._path), f"its checkpoint lacks {lacking}. Use another file")
        return names

    def _tensor_blocks(self, name: str, config: Any) -> GgufBlocks:
        tensor = self._tensors[name]
        data = tensor.data
        if self._architecture == "llama" and ".attn_q." in name:
            data = data[_rotary_permutation(len(data), config.num_attention_heads)]
        elif self._architecture == "llama" and ".attn_k." in name:
            data = data[_rotary_permutation(len(data), config.num_key_value_heads)]
        return GgufBlocks(tensor.tensor_type, data)

    def _weight(self, stored: GgufBlocks, name: str) -> Tensor:
        # Gemma norms multiply by 1 + weight in transformers, and llama.cpp stores 1 + weight.
        if self._architecture.startswith("gemma") and name.endswith("norm.weight"):
            return stored.weight() - 1
        return stored.weight()


def _rotary_permutation(rows: int, heads: int) -> np.ndarray:
    """Return the permutation of the rows of a query or key weight from llama.cpp to transformers.

    The rotary embedding of llama.cpp pairs adjacent components. The embedding of transformers pairs
    components half a head apart.
    """
    return np.arange(rows).reshape(heads, -1, 2).swapaxes(1, 2).ravel()


def _columns(stored: GgufBlocks) -> int:
    """Return the number of elements along the last dimension."""
    elements, size = gguf.GGML_QUANT_SIZES[stored.kind]
    return stored.data.shape[-1] * stored.data.itemsize // size * elements


def _module_name(model: nn.Module, target: nn.Module) -> str:
    return next(name for name, module in model.named_modules() if module is target)


def _require_readable(path: Path, kind: GGMLQuantizationType, tensor: str) -> None:
    block = np.zeros((1, gguf.GGML_QUANT_SIZES[kind][1]), np.uint8)
    try:
        gguf.dequantize(block, kind)
    except NotImplementedError:
        hint = f"its tensor {tensor} has the unsupported type {kind.name}. Use a file in Q4_K_M, Q8_0 or F16"
        raise InputError("model", str(path), hint) from None
