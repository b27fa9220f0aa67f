"""Loading of Hugging Face checkpoints from the hub, a folder or a GGUF file.

Pickled weights are never loaded. Code from a model's repository runs only if the caller allows it.
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

from trialogue.arrays import parse_device
from trialogue.errors import InputError, first_line
from trialogue.models.decoders.checkpoint import DecoderCheckpoint
from trialogue.models.decoders.tokenizer_file import TokenizerFile
from trialogue.models.hub.adapters import (
    adapter_base,
    merge_adapter,
    require_adapter_layers,
    require_matching_base,
)
from trialogue.models.hub.catalogue import find_folder
from trialogue.models.hub.findings import SelfCheckStore
from trialogue.models.hub.load_errors import Kind, explain_load_error
from trialogue.models.hub.memory import conversion_size, require_memory
from trialogue.models.packed.linear import load_missing_weights
from trialogue.models.tokenization import Tokenization
from trialogue.storage import compute_sha256

if TYPE_CHECKING:
    from trialogue.models.hub.gguf_file import GgufFile
    from trialogue.models.packed.gguf_blocks import GgufBlocks

_KINDS = {
    "CausalLM": "causal language model",
    "MaskedLM": "masked language model",
    "SequenceClassification": "sequence classifier",
    "Model": "whole model",
}
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt")


def load_checkpoint(kind: Kind, name: str | Path, **settings: Any) -> tuple[Any, Any]:
    """Return the model and the tokenizer of a Hugging Face checkpoint.

    Args:
        kind: Output head of the model.
        name: Hub id, folder, GGUF file, or short name of a model.
        **settings: The arguments `device`, `dtype` and `remote_code` of `Checkpoint`.
    """
    checkpoint = Checkpoint(kind, name, **settings)
    return checkpoint.model(), checkpoint.tokenizer


class Checkpoint:
    """Hugging Face checkpoint, whose configuration, tokenizer and weights are loaded when they are first used.

    Args:
        kind: Output head of the model.
        name: Hub id, folder, GGUF file, or short name of a model that was set up with `trialogue models pull`. The
            folder of an adapter stands for its base model with the adapter, and requires peft.
        device: Device of the model (default: the GPU if available, otherwise the CPU).
        dtype: Name of a torch dtype, or "auto" for the dtype of the checkpoint.
        remote_code: Allow code from the model's repository to run.

    Raises:
        InputError: If the dtype, the device or the GGUF file does not exist. Also if the model of this short name has
            not been set up, or if the folder holds an adapter that cannot be loaded.
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
        self.dtype, self.device = parse_dtype(dtype), select_device(device)
        pulled = find_folder(self.name)
        source = Path(name) if pulled is None else pulled
        self._location = str(name if pulled is None else pulled)
        self._loading_options: dict[str, Any] = {"trust_remote_code": remote_code}
        self._weight_options: dict[str, Any] = {"use_safetensors": True}
        self._gguf_path = source if source.suffix == ".gguf" else None
        if self._gguf_path is not None:
            if not source.is_file():
                raise InputError("model", self._location, "there is no such file")
            self._location, self._weight_options = str(source.parent), {}
            self._loading_options["gguf_file"] = source.name
        # An adapter uses the configuration of its base model, and also its tokenizer unless the folder has one.
        self._base_model = adapter_base(source)
        self._config_location = self._base_model or self._location
        has_tokenizer = any((source / file).is_file() for file in _TOKENIZERS)
        self._tokenizer_location = self._location if has_tokenizer else self._config_location

    @cached_property
    def config(self) -> Any:
        """Configuration of the model. Raises `InputError` if the model cannot be loaded."""
        with self._convert_errors(self._base_model):
            import transformers

            import trialogue.models.hub.masked_checkpoint  # noqa: F401  (registers masked networks of this package)

            if self._gguf is not None:
                return self._gguf.config()
            _require_reachable(self._config_location)
            return transformers.AutoConfig.from_pretrained(self._config_location, **self._loading_options)

    @cached_property
    def tokenizer(self) -> Any:
        """Tokenizer of the model. Raises `InputError` if the model cannot be loaded or has no tokenizer."""
        config = self.config
        with self._convert_errors():
            import transformers

            location = self._tokenizer_location
            try:
                if self._gguf is not None:
                    # `AutoTokenizer` reads the file once more, and builds the same tokenizer.
                    return transformers.PreTrainedTokenizerFast.from_pretrained(
                        location, **self._loading_options
                    )
                return transformers.AutoTokenizer.from_pretrained(
                    location, config=config, **self._loading_options
                )
            # The error for a missing tokenizer differs between versions of the library.
            except Exception as error:
                hint = f"it has no tokenizer that can be read ({first_line(error)}). Use a model with a tokenizer.json"
                raise InputError("model", location, hint) from error

    @cached_property
    def text_config(self) -> Any:
        """Configuration of the text decoder. Raises `InputError` if the model cannot be loaded."""
        return self._decoder.config if self._decoder else self.config.get_text_config(decoder=True)

    @cached_property
    def tokenization(self) -> Tokenization:
        """Tokenization of the model. Raises `InputError` if the model cannot be loaded or has no tokenizer."""
        tokenizer = None
        if self._decoder is not None and self._tokenizer_location == self._location:
            tokenizer = TokenizerFile.open(
                Path(self._location), self._decoder.config.model_type, lambda: self.tokenizer
            )
        return Tokenization(tokenizer or self.tokenizer, getattr(self.text_config, "vocab_size", None))

    def model(self) -> Any:
        """Load the model with its weights onto the device.

        Raises:
            InputError: If the model cannot be loaded, if weights are missing, or if memory does not suffice.
        """
        if self._gguf is not None:
            require_memory("model", self.name, self._gguf.elements * torch.float32.itemsize)
        model, blocks = self.load_without_dequantising()
        load_missing_weights(blocks)
        if self._gguf is not None and self.dtype != "auto":
            model = model.to(self.dtype)
        return model.to(self.device)

    def load_without_dequantising(self) -> tuple[Any, dict[nn.Module, GgufBlocks]]:
        """Load the model onto the CPU, with the linear layers of a GGUF file still quantised.

        Returns:
            The model, and the quantised blocks of each linear layer without weights. The second item is empty for other
            checkpoints.

        Raises:
            InputError: If the model cannot be loaded, if weights are missing, or if memory does not suffice.
        """
        with self._convert_errors():
            import transformers

            if self._gguf is not None:
                return self._gguf.model(self.config)
            _require_head(self.config, self.kind, self.name)
            if self.dtype != "auto":
                require_memory("model", self.name, conversion_size(Path(self._location), self.dtype))
            head = "AutoModel" if self.kind == "Model" else f"AutoModelFor{self.kind}"
            loader = getattr(transformers, head)
            try:
                model, loading = loader.from_pretrained(
                    self._location,
                    dtype=self.dtype,
                    output_loading_info=True,
                    **self._weight_options,
                    **self._loading_options,
                )
            except (ValueError, RuntimeError) as error:
                if self._base_model is not None:
                    require_matching_base(Path(self._location), self._base_model, error)
                raise
            _require_all_weights(loading, self.kind, self.name)
            if self._base_model is not None:
                require_adapter_layers(Path(self._location), self._base_model, model)
                merge_adapter(model)
            return model, {}

    def load_for_inference(self) -> tuple[Any, dict[nn.Module, GgufBlocks]]:
        """Load the model like `load_without_dequantising`, but without transformers if it is not required.

        The model has the attributes and the forward pass of a model of transformers, and no other methods.
        """
        if self._decoder is not None:
            require_memory("model", self.name, conversion_size(Path(self._location), torch.float32))
            network = self._decoder.load()
            if network is not None:
                return network, {}
        return self.load_without_dequantising()

    @cached_property
    def identity(self) -> str:
        """Identifier of the weights: the commit on the hub, or the sha256 sum of the file, or an empty string.

        For several files, it is the sha256 sum of the output of `sha256sum *.safetensors`.
        """
        location = self._gguf_path or Path(self._location)
        if not location.exists():
            commit = getattr(self.config, "_commit_hash", None)
            return f"commit {commit}" if commit else ""
        files = [location] if location.is_file() else sorted(location.glob("*.safetensors"))
        digests = list(map(compute_sha256, files))
        if len(files) > 1:
            lines = "".join(f"{digest}  {file.name}\n" for digest, file in zip(digests, files, strict=True))
            digests = [hashlib.sha256(lines.encode()).hexdigest()]
        return f"sha256 {digests[0]}" if digests else ""

    def findings(self, **settings: Any) -> SelfCheckStore:
        """Return the stored self-check results of this model.

        Results are stored for local files on the CPU only.
        """
        location = Path(self._location)
        # The base model of an adapter and remote code are in other folders, whose changes would go unnoticed.
        if (
            self._config_location != self._location
            or self._loading_options["trust_remote_code"]
            or self.device.type != "cpu"
        ):
            return SelfCheckStore()
        if self._gguf_path is not None:
            files = [self._gguf_path]
        else:
            files = list(location.iterdir()) if location.is_dir() else []
        conditions = {"kind": self.kind, "dtype": str(self.dtype), **settings}
        return SelfCheckStore(filter(Path.is_file, files), conditions)

    @cached_property
    def _decoder(self) -> DecoderCheckpoint | None:
        """The checkpoint as one that is loaded without the package transformers, or None if it needs the package."""
        needs_transformers = self._gguf_path is not None or self._base_model is not None
        if self.kind != "CausalLM" or self.dtype != torch.float32 or needs_transformers:
            return None
        return DecoderCheckpoint.open(Path(self._location))

    @cached_property
    def _gguf(self) -> GgufFile | None:
        """GGUF file if its weights can be read without transformers, otherwise None."""
        if self._gguf_path is None:
            return None
        from trialogue.models.hub.gguf_file import GgufFile

        file = GgufFile(self._gguf_path)
        return file if self.kind in ("CausalLM", "Model") and file.is_supported() else None

    @contextmanager
    def _convert_errors(self, base: str | None = None) -> Iterator[None]:
        """Silence the libraries, and convert their errors to `InputError`."""
        from huggingface_hub.utils import logging as hub_logging
        from safetensors import SafetensorError
        from transformers.utils import logging

        bars = logging.is_progress_bar_enabled()
        verbosity, hub_verbosity = logging.get_verbosity(), hub_logging.get_verbosity()
        logging.disable_progress_bar()
        logging.set_verbosity_error()
        # The library logs every attempt to reach the hub.
        hub_logging.set_verbosity(logging.ERROR)
        try:
            yield
        except (OSError, ValueError, ImportError, RuntimeError, KeyError, SafetensorError) as error:
            if isinstance(error, InputError):
                raise
            hint = explain_load_error(error, base or self.name)
            hint = hint if base is None else f"its base model {base!r} cannot be loaded: {hint}"
            raise InputError("model", self.name, hint) from error
        finally:
            logging.set_verbosity(verbosity)
            hub_logging.set_verbosity(hub_verbosity)
            if bars:
                logging.enable_progress_bar()


def _require_reachable(location: str) -> None:
    """Raise an error if a model can be found neither in a folder, nor in the cache of the hub, nor on the hub."""
    from huggingface_hub import constants, errors, file_download, hf_hub_url, try_to_load_from_cache

    # The errors of the HTTP client have this base class, whose module depends on the version of the hub library.
    http_error: type[Exception] = errors.HTTPError  # type: ignore[attr-defined]
    file = "config.json"
    if Path(location).exists() or try_to_load_from_cache(location, file) is not None:
        return
    try:
        file_download.get_hf_file_metadata(hf_hub_url(location, file), timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except errors.RepositoryNotFoundError:
        raise
    except errors.HfHubHTTPError:
        return
    except (OSError, http_error) as error:
        raise OSError(f"cannot connect to the hub: {first_line(error)}") from error


def _require_head(config: Any, kind: Kind, name: str) -> None:
    """Raise `InputError` if the configuration names only models of the other kind, masked or causal.

    The library would load BERT as a causal model, although its attention is bidirectional.
    """
    endings, hint = {
        "CausalLM": (
            ("ForMaskedLM",),
            "it is a masked language model. Use `unmask` (`trialogue generate --sampler unmasking:confidence`)",
        ),
        "MaskedLM": (
            ("ForCausalLM", "LMHeadModel"),
            "it is a causal language model. Use `generate` without an unmasking sampler, or choose a masked model",
        ),
    }.get(kind, ((), ""))
    architectures = config.architectures or ()
    if architectures and all(architecture.endswith(endings) for architecture in architectures):
        raise InputError("model", name, hint)


def _require_all_weights(loading: dict[str, Any], kind: Kind, name: str) -> None:
    """Raise `InputError` if weights are missing, because transformers would initialise them at random.

    The pooler of a model without a head may be missing, because it is not used.
    """
    missing = sorted(
        key for key in loading.get("missing_keys") or () if kind != "Model" or "pooler" not in key
    )
    if missing:
        names = ", ".join(missing[:2]) + (f" and {len(missing) - 2} more" if len(missing) > 2 else "")
        raise InputError("model", name, f"it is not a {_KINDS[kind]}: its checkpoint lacks {names}")


def parse_dtype(dtype: str | torch.dtype) -> Any:
    """Convert `dtype` to a torch dtype or "auto". Raises `InputError` for names of other types."""
    if isinstance(dtype, torch.dtype) or dtype == "auto":
        return dtype
    named = getattr(torch, dtype, None)
    if not isinstance(named, torch.dtype) or not named.is_floating_point:
        raise InputError("dtype", dtype, "use auto, float32, bfloat16, float16 or float64")
    return named


def select_device(device: str | torch.device | None) -> torch.device:
    """Return a torch device, after checking that it exists.

    Args:
        device: Device or its name. None for the GPU if available, otherwise the CPU.

    Raises:
        InputError: If the device does not exist or is "meta".
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = parse_device(device)
    if found.type == "meta":
        hint = "it cannot be used here: its tensors have no values. Use cpu or cuda"
        raise InputError("device", str(device), hint)
    return found
