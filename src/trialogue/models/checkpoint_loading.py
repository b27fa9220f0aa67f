"""Hugging Face checkpoints, from the hub or a folder: model and tokenizer, or one line on why they cannot be had.

Weights are safetensors or GGUF, never pickles; code that comes with a model runs only when asked for.
"""

from pathlib import Path
from typing import Any, Literal

import torch

from trialogue.arrays import checked_device
from trialogue.errors import InputError

Kind = Literal["CausalLM", "MaskedLM"]
_KINDS = {"CausalLM": "causal", "MaskedLM": "masked"}


def load_checkpoint(
    kind: Kind,
    name: str | Path,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    remote_code: bool = False,
) -> tuple[Any, Any]:
    """Load model and tokenizer of `name`: a hub id, a folder, a GGUF file, or the short name of a model set up before.

    `device` is the GPU where there is one. `dtype` is a name of torch's, or "auto" for that of the checkpoint. Code of
    the model's repository runs only with `remote_code`. Raises `InputError` for a model that cannot be had, has no
    tokenizer, or whose checkpoint lacks weights of such a language model, and for a device that is not there.
    """
    import transformers
    from huggingface_hub.utils import logging as hub_logging
    from safetensors import SafetensorError
    from transformers.utils import logging

    from trialogue.models.catalogue import folder_of

    known = folder_of(str(name))
    source = Path(name) if known is None else known
    where: dict[str, Any] = {"trust_remote_code": remote_code}
    place = str(name if known is None else known)
    if source.suffix == ".gguf":
        if not source.is_file():
            raise InputError("model", place, "there is no such file")
        place, where["gguf_file"] = str(source.parent), source.name
    else:
        where["use_safetensors"] = True
    stored = _dtype(dtype)
    target = _device(device)
    bars = logging.is_progress_bar_enabled()
    verbosity, hub_verbosity = logging.get_verbosity(), hub_logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    # It tells of every attempt to reach the hub.
    hub_logging.set_verbosity(logging.ERROR)
    try:
        loader = getattr(transformers, f"AutoModelFor{kind}")
        model, loading = loader.from_pretrained(place, dtype=stored, output_loading_info=True, **where)
        _require_all_weights(loading, kind, str(name))
        where.pop("use_safetensors", None)
        tokenizer = _tokenizer(place, where)
        model = model.to(target)
    except (OSError, ValueError, ImportError, RuntimeError, KeyError, SafetensorError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("model", str(name), _reason(error, str(name), kind)) from error
    finally:
        logging.set_verbosity(verbosity)
        hub_logging.set_verbosity(hub_verbosity)
        if bars:
            logging.enable_progress_bar()
    return model, tokenizer


def _require_all_weights(loading: dict[str, Any], kind: Kind, name: str) -> None:
    """Weights that a checkpoint lacks would be drawn at random, without a word."""
    missing = sorted(loading.get("missing_keys") or ())
    if missing:
        some = ", ".join(missing[:2]) + (f" and {len(missing) - 2} more" if len(missing) > 2 else "")
        raise InputError(
            "model", name, f"it is no {_KINDS[kind]} language model: its checkpoint lacks {some}"
        )


def _tokenizer(place: str, where: dict[str, Any]) -> Any:
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(place, **where)
    except Exception as error:  # what a missing tokenizer raises differs between versions of the library
        raise InputError(
            "model", place, f"it has no tokenizer that can be read: {first_line(error)}"
        ) from error


def _dtype(dtype: str | torch.dtype) -> Any:
    if isinstance(dtype, torch.dtype) or dtype == "auto":
        return dtype
    named = getattr(torch, dtype, None)
    if not isinstance(named, torch.dtype) or not named.is_floating_point:
        raise InputError("dtype", dtype, "use auto, float32, bfloat16, float16 or float64")
    return named


def _device(device: str | torch.device | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = checked_device(device)
    if found.type == "meta":
        raise InputError("device", str(device), "it cannot be used here: tensors have no values there")
    return found


def first_line(error: BaseException) -> str:
    """The first line of what went wrong."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()


def _reason(error: BaseException, name: str, kind: Kind) -> str:
    """What a user can do about a model that does not load."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    kinds = {type(part).__name__ for part in chain}
    text = " ".join(str(part) for part in chain)
    if "trust_remote_code" in text:
        never = "which is never run for a masked model"
        mend = (
            never if kind == "MaskedLM" else "allow it with remote_code (--trust-remote-code) if you trust it"
        )
        return f"it needs code of its own repository: {mend}"
    if Path(name).exists():
        if "SafetensorError" in kinds:
            return f"its weights are cut short or damaged ({first_line(error)}): fetch them again"
        if "safetensors" in text:
            return "it holds no safetensors weights; convert them, pickled weights are not loaded"
        return f"its files cannot be loaded: {first_line(error)}"
    if "GatedRepoError" in kinds or "401 Client Error" in text or "403 Client Error" in text:
        return "it is private, gated or does not exist: ask for access and log in with `hf auth login`"
    if "RepositoryNotFoundError" in kinds or "HFValidationError" in kinds:
        return "there is no such model on the hub, and no such folder"
    if "safetensors" in text and "does not appear" in text:
        return "it has no safetensors weights; pickled weights are not loaded"
    if kinds & {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "ConnectionError", "ConnectError"} or (
        "connect" in text.lower()
    ):
        return "the hub cannot be reached and the model is not in its cache; give a folder, or go online once"
    return f"it cannot be loaded: {first_line(error)}"
