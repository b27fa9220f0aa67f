"""Which conditionals a checkpoint of Hugging Face answers with: its head, by what its config says that it holds."""

from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.load_errors import Kind


def kind_of(name: str | Path, *, remote_code: bool = False) -> Kind:
    """Whether the model `name` (see `Checkpoint`) has a head for masked tokens, or one for the next token.

    The code of a model's repository runs only with `remote_code`; which head its classes have, its config says.
    Raises `InputError` for a model that cannot be had, and for one that has neither.
    """
    checkpoint = Checkpoint("CausalLM", name, remote_code=remote_code)
    config = checkpoint.config
    if Path(name).suffix == ".gguf":
        return "CausalLM"
    held = tuple(config.architectures or ())
    kinds: tuple[Kind, ...] = ("MaskedLM", "CausalLM")
    for kind in kinds:
        if set(held) & (_classes(kind, type(config)) | _own_classes(kind, config)):
            return kind
    if any(of.endswith("ForPreTraining") for of in held) and _classes("MaskedLM", type(config)):
        return "MaskedLM"
    said = f"says it holds a {' and a '.join(held)}" if held else "does not say what it holds"
    raise InputError("model", str(name), f"it has neither a masked nor a causal head: its config {said}")


def _classes(kind: Kind, config: type[Any]) -> set[str]:
    """The classes of transformers with that head for models of a class of configs."""
    import transformers

    mapping = {
        "MaskedLM": transformers.MODEL_FOR_MASKED_LM_MAPPING,
        "CausalLM": transformers.MODEL_FOR_CAUSAL_LM_MAPPING,
    }[kind]
    if config not in mapping:
        return set()
    found = mapping[config]
    return {of.__name__ for of in (found if isinstance(found, tuple) else (found,))}


def _own_classes(kind: Kind, config: Any) -> set[str]:
    """The class with that head in the code of the model's own repository."""
    place = (getattr(config, "auto_map", None) or {}).get(f"AutoModelFor{kind}")
    return {place.rsplit(".", 1)[-1]} if isinstance(place, str) else set()
