"""Next-token oracle for models of llama.cpp, selected by `--model llama-cpp:FILE.gguf`.

The oracle uses the low-level interface of llama.cpp, which can truncate and copy sequences and evaluate sequences of
different lengths in one batch. llama.cpp computes with the weights in the format of the file, on the device for which
it was compiled.
"""

import ctypes
import weakref
from pathlib import Path
from typing import Any

import llama_cpp as llama
import numpy as np
import torch
from llama_vocabulary import GGUFTokenization, Vocabulary
from torch import Tensor

from trialogue.errors import InputError
from trialogue.extend import Context, Pretrained, TextModel

_last_error = ["no error message"]
_ERROR_LEVEL = 3


@llama.llama_log_callback
def _record_error(level: int, text: bytes, _: object) -> None:
    if level == _ERROR_LEVEL and text.strip():
        _last_error[0] = text.decode(errors="replace").strip()


def _llama_error(message: str) -> InputError:
    return InputError("model", "GGUF", f"llama.cpp {message}: {_last_error[0]}")


llama.llama_log_set(_record_error, ctypes.c_void_p(0))


class GGUF(Pretrained):
    """A GGUF file whose weights have not been loaded.

    Args:
        name: Path of the file.
        **settings: Settings of `Pretrained`, which must have their default values.

    Raises:
        InputError: If the file cannot be read, or a setting is not supported by llama.cpp.
    """

    def __init__(self, name: str | Path, **settings: Any) -> None:
        _require_default(settings, device=None, dtype="float32", remote_code=False)
        if not Path(name).is_file():
            raise InputError("model", str(name), "the file does not exist")
        try:
            head = llama.Llama(str(name), vocab_only=True, verbose=False)
            self.max_length = int(head.metadata[head.metadata["general.architecture"] + ".context_length"])
        except (ValueError, KeyError):
            raise _llama_error(f"cannot read a model from {name}") from None
        self._file, self.tokenization = str(name), GGUFTokenization(Vocabulary(head), head.n_vocab())

    def load(self, *, extra_buffers: bool = False, **settings: Any) -> "LlamaOracle":
        """Load the weights.

        Args:
            extra_buffers: Whether llama.cpp may repack weights for AMX. With llama-cpp-python 0.3.36, several rows then
                crash.
            **settings: Settings of `Pretrained.load`, which must have their default values.

        Raises:
            InputError: If the weights cannot be loaded.
        """
        _require_default(settings, recompute=False, weights="float32")
        params = llama.llama_model_default_params()
        params.use_extra_bufts = extra_buffers
        model = llama.llama_model_load_from_file(self._file.encode(), params)
        if model is None:
            raise _llama_error(f"cannot load weights from {self._file}")
        return LlamaOracle(model, self.tokenization)


def _require_default(settings: dict[str, Any], **defaults: Any) -> None:
    for field in (name for name, value in settings.items() if value != defaults[name]):
        hint = "leave this setting out, because the file and the build of llama.cpp determine it"
        raise InputError(field, str(settings[field]), hint)


class LlamaOracle(TextModel):
    """Oracle of a causal model of llama.cpp.

    If the vocabulary has several end-of-text tokens, their probabilities are added to that of `eos`.

    Args:
        model: Model handle, which the oracle frees.
        tokenization: Vocabulary of the model.

    Raises:
        InputError: If the model is not causal, or its state cannot be rewound.
    """

    prompts_go_on, batch_size = True, 16

    def __init__(self, model: Any, tokenization: GGUFTokenization) -> None:
        self.model, self.tokenization = model, tokenization
        weakref.finalize(self, llama.llama_model_free, model)
        for kind in ("is_recurrent", "is_hybrid", "is_diffusion", "has_encoder"):
            if getattr(llama, f"llama_model_{kind}")(model):
                hint = f"use a causal model with a cache that can be rewound, because this one {kind}"
                raise InputError("model", "GGUF", hint)
        self.vocab_size, self.eos = tokenization.vocab_size, tokenization.eos
        self.other_ends = sorted({*tokenization.tokenizer.ends} - {self.eos})
        self.max_length = llama.llama_model_n_ctx_train(model)

    def open(self, rows: int, capacity: int, layers: Any = ()) -> Context:
        """Return a context for `rows` sequences of up to `capacity` tokens.

        Raises:
            InputError: If llama.cpp does not support this many rows or tokens, or features of layers are requested.
        """
        bounds = {"rows": llama.llama_max_parallel_sequences() // 2, "capacity": self.max_length}
        for field, value in (("rows", rows), ("capacity", capacity)):
            if value > bounds[field]:
                raise InputError(field, value, f"use at most {bounds[field]} with this model in llama.cpp")
        if layers:
            hint = "leave them out, because llama.cpp does not return hidden states of layers"
            raise InputError("layers", tuple(layers), hint)
        return LlamaContext(self, rows, capacity)


class LlamaContext(Context):
    """Context whose rows are sequences of llama.cpp. Copied tokens share the memory of the original."""

    first, passes = 1, 0

    def __init__(self, oracle: LlamaOracle, rows: int, capacity: int) -> None:
        self._oracle, self._capacity, params = oracle, capacity, llama.llama_context_default_params()
        params.n_ctx = params.n_batch = max(1, rows * capacity)
        params.n_seq_max, params.n_ubatch, params.kv_unified = max(1, 2 * rows), 128, True
        # With a cache in half precision, log-probabilities would depend on the other rows by 0.01 or more.
        params.type_k = params.type_v = llama.GGML_TYPE_F32
        params.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.n_threads = params.n_threads_batch = torch.get_num_threads()
        self._context = llama.llama_init_from_model(oracle.model, params)
        if self._context is None:
            raise _llama_error(f"cannot allocate {rows} rows of {capacity} tokens")
        weakref.finalize(self, llama.llama_free, self._context)
        self._memory, self._held = llama.llama_get_memory(self._context), [0] * rows

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate positions `start..stop` of each row, and return the logits (n, vocab) as features."""
        slots, last, held = rows.numpy(), stop.numpy(), np.array(self._held)
        if not 1 <= last.min() <= last.max() <= self._capacity:
            hint = f"use prefixes of 1 to {self._capacity} tokens: add a BOS token, or open a larger context"
            raise InputError("prompts", f"{last.min()} to {last.max()} tokens", hint)
        # A sequence of llama.cpp has no gaps, so tokens that are missing before `start` are evaluated again.
        first = np.minimum(np.maximum(start.numpy() - 1, 0), held[slots])
        for slot, length in zip(slots.tolist(), first.tolist(), strict=True):
            self._cut(slot, length)
        owner, ends = np.repeat(np.arange(len(slots)), last - first), (last - first).cumsum()
        positions = (np.arange(len(owner)) - (ends - last)[owner]).astype(np.int32)
        ids, sequences = tokens.numpy()[owner, positions].astype(np.int32), slots[owner].astype(np.int32)
        ones, is_last = np.ones_like(ids), np.zeros(len(ids), dtype=np.int8)
        is_last[ends - 1] = 1
        pointers = sequences.ctypes.data + sequences.itemsize * np.arange(len(ids), dtype=np.uintp)
        batch = llama.llama_batch(n_tokens=len(ids))
        arrays = {"token": ids, "pos": positions, "n_seq_id": ones, "seq_id": pointers, "logits": is_last}
        for name, array in arrays.items():
            setattr(batch, name, ctypes.cast(array.ctypes.data, type(getattr(batch, name))))
        self.passes += 1
        if llama.llama_decode(self._context, batch):
            raise _llama_error(f"cannot evaluate {len(ids)} tokens")
        held[slots], logits = last, torch.empty(len(slots), self._oracle.vocab_size)
        self._held = held.tolist()
        for row, end in zip(logits, ends.tolist(), strict=True):
            ctypes.memmove(row.data_ptr(), llama.llama_get_logits_ith(self._context, end - 1), row.nbytes)
        return logits

    def log_probs(self, features: Tensor) -> Tensor:
        """Return the log-probabilities (n, vocab) of the next token, float32, with all ends of text merged to `eos`."""
        eos, others, log_probs = self._oracle.eos, self._oracle.other_ends, features.log_softmax(-1)
        if others:
            log_probs[:, eos] = log_probs[:, [eos, *others]].logsumexp(1)
            log_probs[:, others] = -torch.inf
        return log_probs

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy positions `start..stop` of the rows `source` (n,) to the rows `rows` (n,)."""
        begin, held, row_count = max(start - 1, 0), list(self._held), len(self._held)
        # Copy through spare sequences, because a row may be both a source and a destination.
        for spare, origin in enumerate(source.tolist(), row_count):
            llama.llama_memory_seq_cp(self._memory, origin, spare, begin, stop)
        for spare, (origin, row) in enumerate(zip(source.tolist(), rows.tolist(), strict=True), row_count):
            if begin <= held[row]:
                self._cut(row, begin)
                llama.llama_memory_seq_cp(self._memory, spare, row, begin, stop)
                self._held[row] = max(begin, min(stop, held[origin]))
            self._cut(spare, 0)

    def _cut(self, row: int, length: int) -> None:
        if not llama.llama_memory_seq_rm(self._memory, row, length, -1):
            raise _llama_error("cannot rewind this model")

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return an independent context for up to `stop` tokens whose row i is a copy of row `rows[i]`."""
        child = LlamaContext(self._oracle, len(rows), max(stop, *self._held))
        for place, row in enumerate(rows.tolist()):
            state = (ctypes.c_uint8 * llama.llama_state_seq_get_size(self._context, row))()
            llama.llama_state_seq_get_data(self._context, state, len(state), row)
            if not llama.llama_state_seq_set_data(child._context, state, len(state), place):
                raise _llama_error("cannot copy its state")
            child._held[place] = self._held[row]
        return child
