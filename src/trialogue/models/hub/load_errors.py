"""What keeps a checkpoint from being loaded, in one line with what a user can do about it."""

from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from trialogue.errors import first_line
from trialogue.models.hub.catalogue import CATALOGUE

Kind = Literal["CausalLM", "MaskedLM", "Model"]
"""A head of transformers, or a model as it is without one."""
_NEVER = "which is never run for a masked model"


def reason(error: BaseException, name: str, kind: Kind) -> str:
    """What a user can do about a model that does not load."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    kinds = {type(part).__name__ for part in chain}
    text = " ".join(str(part) for part in chain)
    near = "".join(f" (did you mean {other}?)" for other in get_close_matches(name, CATALOGUE, 1))
    unreachable = kinds & {
        "LocalEntryNotFoundError",
        "OfflineModeIsEnabled",
        "ConnectionError",
        "ConnectError",
    }
    if "trust_remote_code" in text:
        hint = "allow it with remote_code (--trust-remote-code) if you trust it"
        return f"it needs code of its own repository: {_NEVER if kind == 'MaskedLM' else hint}"
    if "SafetensorError" in kinds:
        return f"its weights are cut short or damaged ({first_line(error)}): fetch them again"
    if "safetensors" in text and (Path(name).exists() or "does not appear" in text):
        return "it holds no safetensors weights; convert them, pickled weights are not loaded"
    if Path(name).exists():
        return f"its files cannot be loaded: {first_line(error)}"
    if "GatedRepoError" in kinds or "401 Client Error" in text or "403 Client Error" in text:
        return "it is private, gated or does not exist: ask for access and log in with `hf auth login`" + near
    if "RepositoryNotFoundError" in kinds or "HFValidationError" in kinds:
        return "there is no such model on the hub, and no such folder" + near
    if unreachable or "connect" in text.lower():
        return f"the hub cannot be reached and the model is not in its cache; give a folder, or go online once{near}"
    return f"it cannot be loaded: {first_line(error)}"
