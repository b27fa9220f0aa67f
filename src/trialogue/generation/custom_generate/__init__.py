"""Samplers for users of transformers: `model.generate(**inputs, custom_generate=decoding(sampler=..., verifier=...))`.

Everything else of a call to `generate` stays as it is, and so does `pipeline("text-generation", ...)`: what a sampler
cannot honour is refused in one line before anything is loaded.
"""

from trialogue.generation.custom_generate.decoder import decoding
from trialogue.generation.custom_generate.outputs import SamplerOutput
from trialogue.generation.custom_generate.rejected import RejectedSamplesError

__all__ = ["RejectedSamplesError", "SamplerOutput", "decoding"]
