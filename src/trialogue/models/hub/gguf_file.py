"""Causal language models of GGUF files whose weights stay in the file's blocks until they are packed.

transformers dequantises every weight, and reads a file's vocabulary anew for each of config, tokenizer and weights,
which takes most of its time. Here config and classes are the library's, and the weights are read where they lie.
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

_READ = {"llama", "qwen2", "qwen3", "gemma3"}
"""Architectures whose tensors llama.cpp stores as transformers names them, but for what is undone here."""


# Lists of more entries are of the vocabulary.
_LONG = 1024


class _Reader(GGUFReader):
    """Leaves vocabularies out, of which the base class makes several arrays for every token."""

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
        stored = self.data.data
        if raw_type == GGUFValueType.ARRAY and self.byte_order == "I":
            of, count = struct.unpack_from("<IQ", stored, orig_offs)
            number = self.gguf_scalar_to_np.get(of)
            place = orig_offs + 12
            if count > _LONG and of in (GGUFValueType.STRING, *self.gguf_scalar_to_np):
                if number is not None:
                    place += count * np.dtype(number).itemsize
                else:
                    for _ in range(count):
                        place += 8 + struct.unpack_from("<Q", stored, place)[0]
                return place - orig_offs, [np.array([count])], [], [GGUFValueType.ARRAY, GGUFValueType(of)]
        return super()._get_field_parts(orig_offs, raw_type)


class GgufFile:
    """The tensors of the GGUF file at `path`.

    Raises `InputError` for a file that is damaged, and for tensors in a type that cannot be dequantised.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            reader = _Reader(path)
            self._fields = reader.fields
            self._architecture = str(self._fields["general.architecture"].contents())
        except (ValueError, KeyError, IndexError, OverflowError, struct.error) as error:
            raise InputError("model", str(path), f"it cannot be read as GGUF: {first_line(error)}") from error
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        for kind in {tensor.tensor_type for tensor in reader.tensors}:
            _require_readable(path, kind, next(t.name for t in reader.tensors if t.tensor_type == kind))

    @property
    def numbers(self) -> int:
        """How many numbers the tensors hold."""
        return sum(int(tensor.n_elements) for tensor in self._tensors.values())

    def known(self) -> bool:
        """Whether `config` and `model` read files of this architecture."""
        return self._architecture in _READ

    def config(self) -> Any:
        """The config that transformers makes of the file."""
        import transformers

        # It reads all of a file: it gets one that says the same, without vocabulary and weights.
        with tempfile.TemporaryDirectory() as folder:
            writer = gguf.GGUFWriter(Path(folder) / "config.gguf", self._architecture)
            for name, field in self._fields.items():
                if name.startswith("GGUF.") or name == "general.architecture" or not field.data:
                    continue
                of = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
                writer.add_key_value(name, field.contents(), field.types[0], of)
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
        """The model of transformers for `config`, and the blocks of its linear layers, whose weights are on no device.

        All else is in float32 on the CPU, input embeddings and what is tied to them among it. Raises `InputError` where
        the file lacks a weight, or holds one of another shape.
        """
        import transformers

        with init_empty_weights(include_buffers=False):
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        model.tie_weights()
        names = self._names(model, config)
        modules = dict(model.named_modules())
        blocks: dict[nn.Module, GgufBlocks] = {}
        for name, parameter in list(model.named_parameters()):
            stored = self._stored(names[name], config)
            place, _, kind = name.rpartition(".")
            module = modules[place]
            shape = (*stored.data.shape[:-1], _columns(stored))
            if shape != tuple(parameter.shape):
                hint = f"its tensor {names[name]} is {shape}, where its config has {tuple(parameter.shape)}"
                raise InputError("model", str(self._path), hint)
            if type(module) is nn.Linear and kind == "weight":
                blocks[module] = stored
            else:
                setattr(module, kind, nn.Parameter(self._weight(stored, name), requires_grad=False))
        head, embeddings = model.get_output_embeddings(), model.get_input_embeddings()
        if head not in blocks:
            model.tie_weights()
            blocks[head] = self._stored(names[_name_of(model, embeddings) + ".weight"], config)
        return model.eval(), blocks

    def _names(self, model: nn.Module, config: Any) -> dict[str, str]:
        """The file's name of every parameter of `model`; raises `InputError` where it lacks one."""
        kind = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == self._architecture)
        table = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
        names = {}
        for name, _ in model.named_parameters():
            stem, _, suffix = name.rpartition(".")
            names[name] = f"{table.get_name(stem)}.{suffix}"
        missing = [name for name, stored in names.items() if stored not in self._tensors]
        if missing:
            some = ", ".join(missing[:2]) + (f" and {len(missing) - 2} more" if len(missing) > 2 else "")
            raise InputError("model", str(self._path), f"its checkpoint lacks {some}")
        return names

    def _stored(self, name: str, config: Any) -> GgufBlocks:
        tensor = self._tensors[name]
        data = tensor.data
        if self._architecture == "llama" and ".attn_q." in name:
            data = data[_rows_as_rotated(len(data), config.num_attention_heads)]
        elif self._architecture == "llama" and ".attn_k." in name:
            data = data[_rows_as_rotated(len(data), config.num_key_value_heads)]
        return GgufBlocks(tensor.tensor_type, data)

    def _weight(self, stored: GgufBlocks, name: str) -> Tensor:
        # llama.cpp keeps what such a norm multiplies by, transformers what it adds to one.
        less = 1 if self._architecture.startswith("gemma") and name.endswith("norm.weight") else 0
        return stored.weight() - less if less else stored.weight()


def _rows_as_rotated(rows: int, heads: int) -> np.ndarray:
    """Which rows of a query or key weight become rows 0, 1, ... of transformers' one.

    llama.cpp rotates neighbouring components of a head, transformers those half a head apart.
    """
    return np.arange(rows).reshape(heads, -1, 2).swapaxes(1, 2).ravel()


def _columns(stored: GgufBlocks) -> int:
    """Numbers that the last dimension of the data holds."""
    numbers, size = gguf.GGML_QUANT_SIZES[stored.kind]
    return stored.data.shape[-1] * stored.data.itemsize // size * numbers


def _name_of(model: nn.Module, wanted: nn.Module) -> str:
    return next(name for name, module in model.named_modules() if module is wanted)


def _require_readable(path: Path, kind: GGMLQuantizationType, tensor: str) -> None:
    numbers = np.zeros((1, gguf.GGML_QUANT_SIZES[kind][1]), np.uint8)
    try:
        gguf.dequantize(numbers, kind)
    except NotImplementedError:
        hint = f"nothing here reads the type {kind.name} of its tensor {tensor}: take a file in Q4_K_M, Q8_0 or F16"
        raise InputError("model", str(path), hint) from None
