"""Short explanations of errors while loading checkpoints."""

from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from trialogue.errors import first_line
from trialogue.models.hub.catalogue import CATALOGUE

Kind = Literal["CausalLM", "MaskedLM", "SequenceClassification", "Model"]
"""Output head of a transformers model, where "Model" stands for a model without a head."""


def explain_load_error(error: BaseException, name: str) -> str:
    """Explain in one line why a checkpoint could not be loaded, with advice to the user.

    Args:
        error: Error of transformers or of the hub library.
        name: Model name that was passed by the user.
    """
    errors: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in errors:
        errors.append(cause)
        cause = cause.__cause__ or cause.__context__
    kinds = {type(part).__name__ for part in errors}
    text = " ".join(str(part) for part in errors)
    suggestion = "".join(f" (did you mean {other}?)" for other in get_close_matches(name, CATALOGUE, 1))
    unreachable = kinds & {
        "LocalEntryNotFoundError",
        "OfflineModeIsEnabled",
        "ConnectionError",
        "ConnectError",
    }
    if "trust_remote_code" in text:
        return (
            "it needs code from its repository. If you trust it, use remote_code=True (--trust-remote-code)"
        )
    if "SafetensorError" in kinds:
        return f"its weights are truncated or damaged ({first_line(error)}). Download them again"
    if "safetensors" in text and (Path(name).exists() or "does not appear" in text):
        return (
            "it has no safetensors weights, and pickled weights are not loaded. Convert them to safetensors"
        )
    if Path(name).exists():
        return f"its files cannot be loaded: {first_line(error)}"
    if "GatedRepoError" in kinds or "401 Client Error" in text or "403 Client Error" in text:
        hint = "it is private, gated or does not exist. Request access and log in with `hf auth login`"
        return hint + suggestion
    if "RepositoryNotFoundError" in kinds or "HFValidationError" in kinds:
        return "there is no such model on the hub, and no such folder" + suggestion
    if unreachable or "connect" in text.lower():
        folder = Path(name).parent
        if "/" in name and folder.is_dir():
            return f"there is no such folder in {folder}" + suggestion
        hint = "there is no such folder, the hub cannot be reached, and the model is not in its cache. Give "
        hint += "a folder, or connect to the internet"
        return hint + suggestion
    return f"it cannot be loaded: {first_line(error)}"
