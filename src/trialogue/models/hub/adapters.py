"""Adapters (LoRA and others, by peft): detection, error messages, and merging into the base model."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trialogue.errors import InputError, require_text

_WEIGHTS = "adapter_model.safetensors"


def adapter_base(folder: Path) -> str | None:
    """Return the name of the base model of an adapter.

    Args:
        folder: Folder that may contain an adapter.

    Returns:
        The name of the base model, or None if the folder does not contain an adapter.

    Raises:
        InputError: If the adapter does not name its base model, has no safetensors weights, or if peft is not
            installed.
    """
    config_file = folder / "adapter_config.json"
    if not config_file.is_file() or (folder / "config.json").is_file():
        return None
    try:
        base = json.loads(config_file.read_text(encoding="utf-8"))["base_model_name_or_path"]
        require_text("model", base)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        hint = "it is an adapter that does not name its base model. Add base_model_name_or_path to adapter_config.json"
        raise InputError("model", str(folder), hint) from None
    if find_spec("peft") is None:
        hint = f"it is an adapter of {base!r}. Install peft to load it (`pip install peft`)"
        raise InputError("model", str(folder), hint)
    if not (folder / _WEIGHTS).is_file():
        hint = "the adapter has no safetensors weights, and pickled weights are not loaded. Convert them to safetensors"
        raise InputError("model", str(folder), hint)
    return str(base)


def require_adapter_layers(folder: Path, base: str, model: Any) -> None:
    """Raise `InputError` if the adapter has weights for layers that the model does not have.

    Args:
        folder: Folder of the adapter.
        base: Name of the base model.
        model: Base model with the adapter.
    """
    from safetensors import safe_open

    with safe_open(folder / _WEIGHTS, "pt") as file:
        names = [name.removeprefix("base_model.model.") for name in file.keys()]  # noqa: SIM118 (not a mapping)
    parameters = {name.replace(".default", "") for name, _ in model.named_parameters()}
    # If the model has no head, the adapter may still use the layer names of the model with a head.
    prefix = f"{model.base_model_prefix}."
    missing = [
        name for name in names if "lora_" in name and not {name, name.removeprefix(prefix)} & parameters
    ]
    if missing:
        raise _mismatch_error(folder, base, f"which has no {missing[0].partition('.lora_')[0]}")


def require_matching_base(folder: Path, base: str, error: BaseException) -> None:
    """Raise `InputError` if an adapter could not be loaded because it belongs to a different base model.

    Args:
        folder: Folder of the adapter.
        base: Name of the base model.
        error: Error of the loading library.
    """
    if "mismatched_sizes" in str(error) or "size mismatch" in str(error):
        raise _mismatch_error(folder, base, "whose weights have other sizes") from error
    if "target modules" in str(error).lower():
        raise _mismatch_error(folder, base, "which has none of the adapted layers") from error


def merge_adapter(model: Any) -> None:
    """Merge the adapter into the weights of `model`, and restore its original layers."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, layer in list(model.named_modules()):
        if isinstance(layer, BaseTunerLayer):
            layer.merge()
            model.set_submodule(name, layer.get_base_layer())


def _mismatch_error(folder: Path, base: str, difference: str) -> InputError:
    hint = f"it is not an adapter of {base!r}, {difference}. Name its base model in adapter_config.json"
    return InputError("model", str(folder), hint)


def transformers_model(model: Any) -> Any:
    """Return the transformers model of a `PeftModel`, whose layers include the adapter.

    Other models are returned unchanged.

    Raises:
        InputError: If the adapter changes the input of the model instead of its layers, as in prompt tuning.
    """
    # If peft has not been imported, the model cannot be a `PeftModel`.
    peft = sys.modules.get("peft")
    if peft is None or not isinstance(model, peft.PeftModel):
        return model
    if model.active_peft_config.is_prompt_learning:
        hint = "its adapter extends the prompt, which is not supported. Use an adapter of layers, for example LoRA"
        raise InputError("model", type(model).__name__, hint)
    return model.get_base_model()
