"""Reads arguments of `model.generate` that transformers does not pass to a custom generation function.

These are the streamer, the assistant model and `synced_gpus`. Without them, the reader of a streamer would
wait forever, and the others would be ignored silently. They are read from the call frame of `generate`, which
is not changed.
"""

from types import FrameType
from typing import Any


def unforwarded_arguments(frame: FrameType | None) -> dict[str, Any]:
    """Return the arguments of `generate` that it does not pass to a custom generation function.

    These are `streamer`, `assistant_model` and `synced_gpus`.

    Args:
        frame: Call frame of the custom generation function, or None.

    Returns:
        The arguments that are not None, by name. Empty if the function was not called by `generate`.
    """
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "generate":
        return {}
    names = ("streamer", "assistant_model", "synced_gpus")
    return {name: caller.f_locals[name] for name in names if caller.f_locals.get(name) is not None}
