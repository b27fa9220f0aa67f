"""Adapters of peft: folders of them, which base model they are of, and models that have one."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trialogue.errors import InputError, require_text

_WEIGHTS = "adapter_model.safetensors"


def base_of_adapter(folder: Path) -> str | None:
    """The base model of the adapter in `folder`; None where `folder` is anything else, a model with weights among it.

    Raises `InputError` where peft, which loads adapters, is not installed, and for weights that are pickled.
    """
    described = folder / "adapter_config.json"
    if not described.is_file() or (folder / "config.json").is_file():
        return None
    try:
        base = json.loads(described.read_text(encoding="utf-8"))["base_model_name_or_path"]
        require_text("model", base)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError("model", str(folder), "it is an adapter that does not name its base model") from None
    if find_spec("peft") is None:
        hint = f"it is an adapter of {base!r}: install peft to load it (`pip install peft`)"
        raise InputError("model", str(folder), hint)
    if not (folder / _WEIGHTS).is_file():
        hint = "the adapter holds no safetensors weights; convert them, pickled weights are not loaded"
        raise InputError("model", str(folder), hint)
    return str(base)


def require_fitting(folder: Path, base: str, model: Any) -> None:
    """Raise `InputError` where `model`, the model `base` with the adapter in `folder`, has no place for all of that."""
    from safetensors import safe_open

    with safe_open(folder / _WEIGHTS, "pt") as file:
        names = [name.removeprefix("base_model.model.") for name in file.keys()]  # noqa: SIM118 (it is no mapping)
    places = {name.replace(".default", "") for name, _ in model.named_parameters()}
    # Of a model without its head, whose layers the adapter names as those of the model with one.
    inside = f"{model.base_model_prefix}."
    missing = [name for name in names if "lora_" in name and not {name, name.removeprefix(inside)} & places]
    if missing:
        raise _of_another(folder, base, f"that has no {missing[0].partition('.lora_')[0]}")


def require_no_misfit(folder: Path, base: str, error: BaseException) -> None:
    """Raise `InputError` where loading the adapter in `folder` raised `error` since the model `base` is not its own."""
    if "mismatched_sizes" in str(error) or "size mismatch" in str(error):
        raise _of_another(folder, base, "that has weights of other sizes") from error
    if "target modules" in str(error).lower():
        raise _of_another(folder, base, "that has none of the layers it adapts") from error


def merge(model: Any) -> None:
    """Put the adapter in the layers of `model` into their weights, so that these are plain ones again."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, layer in list(model.named_modules()):
        if isinstance(layer, BaseTunerLayer):
            layer.merge()
            model.set_submodule(name, layer.get_base_layer())


def _of_another(folder: Path, base: str, why: str) -> InputError:
    hint = f"it is an adapter of another model than {base!r}, {why}: name its own base model in adapter_config.json"
    return InputError("model", str(folder), hint)


def unwrapped(model: Any) -> Any:
    """The model of transformers in a `PeftModel`, with the adapter in its layers; any other `model` itself.

    Raises `InputError` for a kind of adapter that is not in layers but in what the model is given, such as prompts.
    """
    # Whoever has such a model has imported peft.
    peft = sys.modules.get("peft")
    if peft is None or not isinstance(model, peft.PeftModel):
        return model
    if model.active_peft_config.is_prompt_learning:
        hint = "its adapter is put before the prompt, which cannot be rewound: merge it, or use one of layers"
        raise InputError("model", type(model).__name__, hint)
    return model.get_base_model()
