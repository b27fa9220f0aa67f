"""Detection of the output head of a Hugging Face checkpoint from its configuration."""

from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.load_errors import Kind

DIFFUSION: dict[str, Kind] = {"llada": "Model", "Dream": "Model", "mdlm": "MaskedLM"}
"""Class that loads a masked diffusion model, by the `model_type` of its configuration."""


def detect_head(name: str | Path, *, remote_code: bool = False) -> Kind:
    """Return the class that loads a language model: "CausalLM" for a causal model, another one for a masked model.

    Args:
        name: Hub id, folder, GGUF file, or short name of a model.
        remote_code: Allow code from the model's repository to run.

    Raises:
        InputError: If the model cannot be loaded, or if it has neither head.
    """
    checkpoint = Checkpoint("CausalLM", name, remote_code=remote_code)
    config = checkpoint.config
    if Path(name).suffix == ".gguf":
        return "CausalLM"
    # The repositories of some masked diffusion models name a causal head.
    if config.model_type in DIFFUSION:
        return DIFFUSION[config.model_type]
    architectures = tuple(config.architectures or ())
    kinds: tuple[Kind, ...] = ("MaskedLM", "CausalLM")
    for kind in kinds:
        if set(architectures) & (_head_classes(kind, type(config)) | _remote_classes(kind, config)):
            return kind
    is_pretraining = any(architecture.endswith("ForPreTraining") for architecture in architectures)
    if is_pretraining and _head_classes("MaskedLM", type(config)):
        return "MaskedLM"
    stated = f"names {' and '.join(architectures)}" if architectures else "does not name its architecture"
    hint = f"it has neither a masked nor a causal head (its configuration {stated}). Use a language model"
    raise InputError("model", str(name), hint)


def _head_classes(kind: Kind, config: type[Any]) -> set[str]:
    """Return the names of the transformers classes that have this output head, for a configuration class."""
    import transformers

    mapping = {
        "MaskedLM": transformers.MODEL_FOR_MASKED_LM_MAPPING,
        "CausalLM": transformers.MODEL_FOR_CAUSAL_LM_MAPPING,
    }[kind]
    if config not in mapping:
        return set()
    classes = mapping[config]
    return {each.__name__ for each in (classes if isinstance(classes, tuple) else (classes,))}


def _remote_classes(kind: Kind, config: Any) -> set[str]:
    """Return the class name with this output head in the code of the model's repository."""
    reference = (getattr(config, "auto_map", None) or {}).get(f"AutoModelFor{kind}")
    return {reference.rsplit(".", 1)[-1]} if isinstance(reference, str) else set()
