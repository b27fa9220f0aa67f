"""Walks for users of transformers: `model.generate(**inputs, custom_generate=decoding(walk=..., verifier=...))`.

Everything else of a call to `generate` stays as it is, and so does `pipeline("text-generation", ...)`: what a walk
cannot honour is refused in one line before anything is loaded.
"""

from trialogue.generation.custom_generate.decoder import decoding
from trialogue.generation.custom_generate.outputs import WalkOutput
from trialogue.generation.custom_generate.rejected import RejectedSamplesError

__all__ = ["RejectedSamplesError", "WalkOutput", "decoding"]
