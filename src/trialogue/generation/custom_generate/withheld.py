"""What `generate` of transformers keeps from a callable that it is given, taken from where it stands.

A callable is handed neither the streamer, nor an assistant, nor what concerns several devices. `generate` has put the
prompt into the first: its reader would wait for the end; the others would be ignored without a word. A tokenizer that
was given is dropped before the stop strings that need it are read.
"""

from types import FrameType
from typing import Any

from trialogue.errors import InputError


def withheld(frame: FrameType | None) -> dict[str, Any]:
    """Arguments of the call of `generate` that `frame`, of what it called, should have been given."""
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "generate":
        return {}
    names = ("streamer", "assistant_model", "synced_gpus")
    return {name: caller.f_locals[name] for name in names if caller.f_locals.get(name) is not None}


def find_tokenizer(frame: FrameType | None, tokenizer: Any) -> None:
    """Let the `generate` that asked inspect for a signature, in a call that ends in `frame`, find `tokenizer`.

    It looks for what is named in the signature, and finds it in the arguments of its own caller. Raises `InputError`
    where it asks again, has stop strings, and has not found it.
    """
    while frame is not None and frame.f_globals.get("__name__") == "inspect":
        frame = frame.f_back
    if frame is None or not str(frame.f_globals.get("__name__")).startswith("transformers."):
        return
    names = frame.f_locals
    if frame.f_code.co_name == "_extract_generation_mode_kwargs" and isinstance(names.get("kwargs"), dict):
        names["kwargs"].setdefault("tokenizer", tokenizer)
    found, config = names.get("generation_mode_kwargs"), names.get("generation_config")
    if frame.f_code.co_name == "generate" and isinstance(found, dict) and found.get("tokenizer") is None:
        require_no_strings(config)


def require_no_strings(config: Any) -> None:
    """Raise `InputError` where `config`, of a call whose stop strings `generate` does not hand on, has any."""
    strings = getattr(config, "stop_strings", None)
    if strings:
        hint = "this version of transformers drops them: give them to decoding, as stop"
        raise InputError("stop_strings", strings, hint)
