"""The streamer of a call of `model.generate`, and other arguments that transformers withholds from a callable.

`generate` passes neither the streamer nor an assistant nor `synced_gpus` to a callable, and has no hook for them. But
it has put the prompt into the streamer, whose reader would wait for the end forever, and the others would be ignored
without an error. This file reads them from the frame of `generate`. Nothing else in the package looks into frames, and
nothing is changed there. If `generate` has another name in a later version, the arguments are not found.
"""

from types import FrameType
from typing import Any


def withheld(frame: FrameType | None) -> dict[str, Any]:
    """Return the arguments of `generate` that it does not pass on, where `frame` is the callable's."""
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "generate":
        return {}
    names = ("streamer", "assistant_model", "synced_gpus")
    return {name: caller.f_locals[name] for name in names if caller.f_locals.get(name) is not None}
