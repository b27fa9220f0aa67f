"""Any model that llama.cpp runs, as an oracle of the next token: `--model llama-cpp:FILE.gguf`.

It speaks to llama.cpp's low-level interface, whose sequences are cut and copied and stand at different positions of a
batch: all that a sampler needs. Weights are multiplied in the file's own format, by whatever llama.cpp was built for.
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

_complaints = ["it does not say why"]


@llama.llama_log_callback
def _listen(level: int, text: bytes, _: object) -> None:
    if level == 3 and text.strip():  # an error
        _complaints[0] = text.decode(errors="replace").strip()


def _refusal(told: str) -> InputError:
    return InputError("model", "GGUF", f"llama.cpp {told}: {_complaints[0]}")


llama.llama_log_set(_listen, ctypes.c_void_p(0))


class GGUF(Pretrained):
    """The GGUF file `name` before its weights are read; raises `InputError` for settings that llama.cpp decides."""

    def __init__(self, name: str | Path, **settings: Any) -> None:
        _require_default(settings, device=None, dtype="float32", remote_code=False)
        if not Path(name).is_file():
            raise InputError("model", str(name), "there is no such file")
        try:
            head = llama.Llama(str(name), vocab_only=True, verbose=False)
            self.max_length = int(head.metadata[head.metadata["general.architecture"] + ".context_length"])
        except (ValueError, KeyError):
            raise _refusal(f"reads no model from {name}") from None
        self._file, self.tokenization = str(name), GGUFTokenization(Vocabulary(head), head.n_vocab())

    def load(self, *, extra_buffers: bool = False, **settings: Any) -> "LlamaOracle":
        """Read the weights; with `extra_buffers` AMX may be used, where several rows crash llama-cpp-python 0.3.36."""
        _require_default(settings, recompute=False, weights="float32")
        params = llama.llama_model_default_params()
        params.use_extra_bufts = extra_buffers
        model = llama.llama_model_load_from_file(self._file.encode(), params)
        if model is None:
            raise _refusal(f"reads no weights from {self._file}")
        return LlamaOracle(model, self.tokenization)


def _require_default(settings: dict[str, Any], **defaults: Any) -> None:
    for field in (name for name, value in settings.items() if value != defaults[name]):
        hint = "leave it out: llama.cpp runs a file in its own format, on what it was built for"
        raise InputError(field, str(settings[field]), hint)


class LlamaOracle(TextModel):
    """A causal `model` of llama.cpp, whose ends of text are one, `eos`; raises `InputError` for any other model."""

    prompts_go_on, batch_size = True, 16

    def __init__(self, model: Any, tokenization: GGUFTokenization) -> None:
        self.model, self.tokenization = model, tokenization
        weakref.finalize(self, llama.llama_model_free, model)
        for kind in ("is_recurrent", "is_hybrid", "is_diffusion", "has_encoder"):
            if getattr(llama, f"llama_model_{kind}")(model):
                raise InputError(
                    "model", "GGUF", f"it {kind}: samplers need a causal one that can be rewound"
                )
        self.vocab_size, self.eos = tokenization.vocab_size, tokenization.eos
        self.other_ends = sorted({*tokenization.tokenizer.ends} - {self.eos})
        self.max_length = llama.llama_model_n_ctx_train(model)

    def open(self, rows: int, capacity: int, layers: Any = ()) -> Context:
        """Make room for `rows` sequences of up to `capacity` tokens; raises `InputError` where there is none."""
        bounds = {"rows": llama.llama_max_parallel_sequences() // 2, "capacity": self.max_length}
        for field, value in (("rows", rows), ("capacity", capacity)):
            if value > bounds[field]:
                raise InputError(field, value, f"llama.cpp has room for {bounds[field]} with this model")
        if layers:
            raise InputError("layers", tuple(layers), "llama.cpp gives no hidden states of layers")
        return LlamaContext(self, rows, capacity)


class LlamaContext(Context):
    """Rows as sequences of llama.cpp, of which `_held` tokens are evaluated; a copy of a token is not stored again."""

    first, passes = 1, 0

    def __init__(self, oracle: LlamaOracle, rows: int, capacity: int) -> None:
        self._oracle, self._capacity, params = oracle, capacity, llama.llama_context_default_params()
        params.n_ctx = params.n_batch = max(1, rows * capacity)
        params.n_seq_max, params.n_ubatch, params.kv_unified = max(1, 2 * rows), 128, True
        # In half precision the distribution of a prefix would depend on the rows beside it, by 0.01 and more.
        params.type_k = params.type_v = llama.GGML_TYPE_F32
        params.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.n_threads = params.n_threads_batch = torch.get_num_threads()
        self._context = llama.llama_init_from_model(oracle.model, params)
        if self._context is None:
            raise _refusal(f"has no room for {rows} rows of {capacity} tokens")
        weakref.finalize(self, llama.llama_free, self._context)
        self._memory, self._held = llama.llama_get_memory(self._context), [0] * rows

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate positions `start..stop` of each row; features are logits (n, vocab)."""
        slots, last, held = rows.numpy(), stop.numpy(), np.array(self._held)
        if not 1 <= last.min() <= last.max() <= self._capacity:
            hint = f"prefixes have 1 to {self._capacity} tokens: begin with a BOS, or open a larger context"
            raise InputError("prompts", f"{last.min()} to {last.max()} tokens", hint)
        # Sequences have no holes: what an earlier call left behind one is evaluated again.
        first = np.minimum(np.maximum(start.numpy() - 1, 0), held[slots])
        for slot, kept in zip(slots.tolist(), first.tolist(), strict=True):
            self._cut(slot, kept)
        owner, ends = np.repeat(np.arange(len(slots)), last - first), (last - first).cumsum()
        places = (np.arange(len(owner)) - (ends - last)[owner]).astype(np.int32)
        ids, sequences = tokens.numpy()[owner, places].astype(np.int32), slots[owner].astype(np.int32)
        ones, asked = np.ones_like(ids), np.zeros(len(ids), dtype=np.int8)
        asked[ends - 1] = 1
        pointers = sequences.ctypes.data + sequences.itemsize * np.arange(len(ids), dtype=np.uintp)
        batch = llama.llama_batch(n_tokens=len(ids))
        arrays = {"token": ids, "pos": places, "n_seq_id": ones, "seq_id": pointers, "logits": asked}
        for name, array in arrays.items():
            setattr(batch, name, ctypes.cast(array.ctypes.data, type(getattr(batch, name))))
        self.passes += 1
        if llama.llama_decode(self._context, batch):
            raise _refusal(f"could not evaluate {len(ids)} tokens")
        held[slots], logits = last, torch.empty(len(slots), self._oracle.vocab_size)
        self._held = held.tolist()
        for row, end in zip(logits, ends.tolist(), strict=True):
            ctypes.memmove(row.data_ptr(), llama.llama_get_logits_ith(self._context, end - 1), row.nbytes)
        return logits

    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) float32 of the next token, `eos` in place of all that end a text."""
        eos, others, answers = self._oracle.eos, self._oracle.other_ends, features.log_softmax(-1)
        if others:
            answers[:, eos] = answers[:, [eos, *others]].logsumexp(1)
            answers[:, others] = -torch.inf
        return answers

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Make positions `start..stop` of storage rows `rows` those of `source` (both (n,))."""
        begin, held, rows_held = max(start - 1, 0), list(self._held), len(self._held)
        # By way of spare sequences: a row may be copied from and to at once.
        for spare, origin in enumerate(source.tolist(), rows_held):
            llama.llama_memory_seq_cp(self._memory, origin, spare, begin, stop)
        for spare, (origin, row) in enumerate(zip(source.tolist(), rows.tolist(), strict=True), rows_held):
            if begin <= held[row]:
                self._cut(row, begin)
                llama.llama_memory_seq_cp(self._memory, spare, row, begin, stop)
                self._held[row] = max(begin, min(stop, held[origin]))
            self._cut(spare, 0)

    def _cut(self, row: int, length: int) -> None:
        if not llama.llama_memory_seq_rm(self._memory, row, length, -1):
            raise _refusal("cannot rewind this model")

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return an independent context for up to `stop` tokens whose row i starts as this one's row `rows[i]`."""
        child = LlamaContext(self._oracle, len(rows), max(stop, *self._held))
        for place, row in enumerate(rows.tolist()):
            state = (ctypes.c_uint8 * llama.llama_state_seq_get_size(self._context, row))()
            llama.llama_state_seq_get_data(self._context, state, len(state), row)
            if not llama.llama_state_seq_set_data(child._context, state, len(state), place):
                raise _refusal("cannot copy its state")
            child._held[place] = self._held[row]
        return child
