"""Use samplers of this library in `model.generate` of transformers.

Pass `decoding(sampler=..., verifier=...)` as the argument `custom_generate` of `model.generate` or of
`pipeline("text-generation", ...)`. All other arguments keep their meaning. An argument that the sampler does not
support raises `InputError` before anything is loaded.
"""

from trialogue.generation.custom_generate.decoder import decoding
from trialogue.generation.custom_generate.outputs import SamplerOutput
from trialogue.generation.custom_generate.rejected import RejectedSamplesError

__all__ = ["RejectedSamplesError", "SamplerOutput", "decoding"]
