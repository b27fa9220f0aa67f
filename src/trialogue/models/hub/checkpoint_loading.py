"""Hugging Face checkpoints, from the hub or a folder: model and tokenizer, or one line on why they cannot be had.

Weights are safetensors or GGUF, never pickles; code that comes with a model runs only when asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from trialogue.arrays import checked_device
from trialogue.errors import InputError, first_line
from trialogue.models.hub.adapters import base_of_adapter, merge, require_fitting, require_no_misfit
from trialogue.models.hub.catalogue import folder_of
from trialogue.models.hub.findings import Findings
from trialogue.models.hub.load_errors import Kind, reason
from trialogue.models.hub.memory import bytes_read, require_memory
from trialogue.models.packed.linear import fill
from trialogue.storage import sha256_of

if TYPE_CHECKING:
    from trialogue.models.hub.gguf_file import GgufFile
    from trialogue.models.packed.gguf_blocks import GgufBlocks

_KINDS = {"CausalLM": "causal language model", "MaskedLM": "masked language model", "Model": "whole model"}
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt")


def load_checkpoint(kind: Kind, name: str | Path, **settings: Any) -> tuple[Any, Any]:
    """Load model and tokenizer of `name` with the settings of `Checkpoint`."""
    checkpoint = Checkpoint(kind, name, **settings)
    return checkpoint.model(), checkpoint.tokenizer


class Checkpoint:
    """A checkpoint by its `name`: a hub id, a folder, a GGUF file, or the short name of a model set up before.

    `config` and `tokenizer` are read when they are first asked for, the weights by `model`. `device` is the GPU where
    there is one. `dtype` is a name of torch's, or "auto" for that of the checkpoint. Code of the model's repository
    runs only with `remote_code`. An adapter's folder stands for its base model with the adapter, if peft is installed.

    Raises `InputError` for a type or a device that is not there, and for a name that nothing goes by.
    """

    def __init__(
        self,
        kind: Kind,
        name: str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        remote_code: bool = False,
    ) -> None:
        self.kind, self.name = kind, str(name)
        self.dtype, self.device = checked_dtype(dtype), usable_device(device)
        known = folder_of(self.name)
        source = Path(name) if known is None else known
        self._place = str(name if known is None else known)
        self._where: dict[str, Any] = {"trust_remote_code": remote_code}
        self._weights: dict[str, Any] = {"use_safetensors": True}
        self._gguf_path = source if source.suffix == ".gguf" else None
        if self._gguf_path is not None:
            if not source.is_file():
                raise InputError("model", self._place, "there is no such file")
            self._place, self._weights = str(source.parent), {}
            self._where["gguf_file"] = source.name
        # Where config and tokenizer are: an adapter has those of its base model.
        self._base = base_of_adapter(source)
        self._described = self._base or self._place
        own = any((source / file).is_file() for file in _TOKENIZERS)
        self._tokenizer_place = self._place if own else self._described

    @cached_property
    def config(self) -> Any:
        """The config of transformers; raises `InputError` where there is no such model."""
        with self._loading(self._base):
            import transformers

            if self._gguf is not None:
                return self._gguf.config()
            _require_reachable(self._described)
            return transformers.AutoConfig.from_pretrained(self._described, **self._where)

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers; raises `InputError` where there is no such model, or it has none."""
        config = self.config
        with self._loading():
            import transformers

            place = self._tokenizer_place
            try:
                if self._gguf is not None:
                    # The choice of a class reads the whole file again, to build the same tokenizer in the end.
                    return transformers.PreTrainedTokenizerFast.from_pretrained(place, **self._where)
                return transformers.AutoTokenizer.from_pretrained(place, config=config, **self._where)
            # The error for a missing tokenizer differs between versions of the library.
            except Exception as error:
                hint = f"it has no tokenizer that can be read: {first_line(error)}"
                raise InputError("model", place, hint) from error

    def model(self) -> Any:
        """The model of transformers with its weights, on the device.

        Raises `InputError` for a model that cannot be had, or whose checkpoint lacks weights of such a language model.
        """
        if self._gguf is not None:
            require_memory("model", self.name, self._gguf.numbers * torch.float32.itemsize)
        model, blocks = self.unfilled()
        fill(blocks)
        if self._gguf is not None and self.dtype != "auto":
            model = model.to(self.dtype)
        return model.to(self.device)

    def unfilled(self) -> tuple[Any, dict[nn.Module, GgufBlocks]]:
        """The model on the CPU, and the layers that have no weights yet: theirs lie in blocks of the GGUF file.

        Raises `InputError` as `model` does.
        """
        with self._loading():
            import transformers

            if self._gguf is not None:
                return self._gguf.model(self.config)
            if self.dtype != "auto":
                require_memory("model", self.name, bytes_read(Path(self._place), self.dtype))
            head = "AutoModel" if self.kind == "Model" else f"AutoModelFor{self.kind}"
            loader = getattr(transformers, head)
            try:
                model, loading = loader.from_pretrained(
                    self._place, dtype=self.dtype, output_loading_info=True, **self._weights, **self._where
                )
            except (ValueError, RuntimeError) as error:
                if self._base is not None:
                    require_no_misfit(Path(self._place), self._base, error)
                raise
            _require_all_weights(loading, self.kind, self.name)
            if self._base is not None:
                require_fitting(Path(self._place), self._base, model)
                merge(model)
            return model, {}

    @cached_property
    def identity(self) -> str:
        """What the weights are known by: the commit on the hub, or a sha256 sum; empty where neither can be had.

        Of several files it is the sum of what `sha256sum *.safetensors` writes in their folder.
        """
        place = self._gguf_path or Path(self._place)
        if not place.exists():
            commit = getattr(self.config, "_commit_hash", None)
            return f"commit {commit}" if commit else ""
        files = [place] if place.is_file() else sorted(place.glob("*.safetensors"))
        sums = list(map(sha256_of, files))
        if len(files) > 1:
            lines = "".join(f"{of}  {file.name}\n" for of, file in zip(sums, files, strict=True))
            sums = [hashlib.sha256(lines.encode()).hexdigest()]
        return f"sha256 {sums[0]}" if sums else ""

    def findings(self, **settings: Any) -> Findings:
        """What trying the model with `settings` has shown here; nothing is kept of one that has no files of its own."""
        place = Path(self._place)
        # What an adapter is put on, and code of a repository, may lie elsewhere.
        if self._described != self._place or self._where["trust_remote_code"] or self.device.type != "cpu":
            return Findings()
        files = (
            [self._gguf_path] if self._gguf_path is not None else place.iterdir() if place.is_dir() else []
        )
        described = {"kind": self.kind, "dtype": str(self.dtype), **settings}
        return Findings(filter(Path.is_file, files), described)

    @cached_property
    def _gguf(self) -> GgufFile | None:
        """The GGUF file, where its weights are read from it directly."""
        if self._gguf_path is None:
            return None
        from trialogue.models.hub.gguf_file import GgufFile

        file = GgufFile(self._gguf_path)
        return file if self.kind != "MaskedLM" and file.known() else None

    @contextmanager
    def _loading(self, base: str | None = None) -> Iterator[None]:
        """Keep the libraries quiet, and turn what they raise, about the model or its `base`, into one line."""
        from huggingface_hub.utils import logging as hub_logging
        from safetensors import SafetensorError
        from transformers.utils import logging

        bars = logging.is_progress_bar_enabled()
        verbosity, hub_verbosity = logging.get_verbosity(), hub_logging.get_verbosity()
        logging.disable_progress_bar()
        logging.set_verbosity_error()
        # It tells of every attempt to reach the hub.
        hub_logging.set_verbosity(logging.ERROR)
        try:
            yield
        except (OSError, ValueError, ImportError, RuntimeError, KeyError, SafetensorError) as error:
            if isinstance(error, InputError):
                raise
            told = reason(error, base or self.name, self.kind)
            told = told if base is None else f"its base model {base!r}: {told}"
            raise InputError("model", self.name, told) from error
        finally:
            logging.set_verbosity(verbosity)
            hub_logging.set_verbosity(hub_verbosity)
            if bars:
                logging.enable_progress_bar()


def _require_reachable(place: str) -> None:
    """Raise an error if the hub has no model `place`, and it is neither a folder nor in the cache of the hub.

    The loader would repeat a request that fails five times, which takes 25 seconds. An error of a server that can be
    reached is left to it: repeating the request may help.
    """
    from huggingface_hub import constants, errors, file_download, hf_hub_url, try_to_load_from_cache

    # The errors of the HTTP client have this base class, whose module depends on the version of the hub library.
    http_error: type[Exception] = errors.HTTPError  # type: ignore[attr-defined]
    file = "config.json"
    if Path(place).exists() or try_to_load_from_cache(place, file) is not None:
        return
    try:
        file_download.get_hf_file_metadata(hf_hub_url(place, file), timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except errors.RepositoryNotFoundError:
        raise
    except errors.HfHubHTTPError:
        return
    except (OSError, http_error) as error:
        raise OSError(f"cannot connect to the hub: {first_line(error)}") from error


def _require_all_weights(loading: dict[str, Any], kind: Kind, name: str) -> None:
    """Weights that a checkpoint lacks would be drawn at random, without a word.

    Of a model without a head those are let be that only make one vector of a text.
    """
    missing = sorted(
        key for key in loading.get("missing_keys") or () if kind != "Model" or "pooler" not in key
    )
    if missing:
        some = ", ".join(missing[:2]) + (f" and {len(missing) - 2} more" if len(missing) > 2 else "")
        raise InputError("model", name, f"it is no {_KINDS[kind]}: its checkpoint lacks {some}")


def checked_dtype(dtype: str | torch.dtype) -> Any:
    """`dtype` as transformers takes it; raises `InputError` for a word that names no type of floating point."""
    if isinstance(dtype, torch.dtype) or dtype == "auto":
        return dtype
    named = getattr(torch, dtype, None)
    if not isinstance(named, torch.dtype) or not named.is_floating_point:
        raise InputError("dtype", dtype, "use auto, float32, bfloat16, float16 or float64")
    return named


def usable_device(device: str | torch.device | None) -> torch.device:
    """`device` as torch's, by default the GPU where there is one; raises `InputError` where it holds no values."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = checked_device(device)
    if found.type == "meta":
        raise InputError("device", str(device), "it cannot be used here: tensors have no values there")
    return found
