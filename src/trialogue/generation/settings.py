"""What a run of `trialogue generate` was asked for, and which of it decides what the samples are."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from trialogue.errors import InputError, non_negative_number, probability, whole_number
from trialogue.generation.prompts import Prompt
from trialogue.generation.verifier_specs import VerifierSpec

_CHOSEN = (
    *("model", "dtype", "chat", "temperature", "top_p", "top_k"),
    *("max_new_tokens", "max_queries", "max_steps", "seed"),
)


@dataclass(frozen=True)
class Settings:
    """A run: `n` samples of each of `prompts`, by `walk` on the model `model`."""

    model: str
    prompts: tuple[Prompt, ...]
    walk_name: str
    walk: Any
    verifier: VerifierSpec = field(default_factory=VerifierSpec)
    chat: bool = False
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    max_new_tokens: int = 256
    max_queries: int | None = None
    max_steps: int | None = None
    seed: int = 0
    batch_size: int | None = None
    memory: int | None = None
    device: str | None = None
    dtype: str = "float32"
    remote_code: bool = False
    recompute: bool = False

    def __post_init__(self) -> None:
        whole_number("n", self.n, 1)
        whole_number("max_new_tokens", self.max_new_tokens, 1)
        whole_number("seed", self.seed, 0)
        non_negative_number("temperature", self.temperature)
        probability("top_p", self.top_p, zero=False)
        for name in ("max_queries", "max_steps", "batch_size", "memory"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1)
        if self.top_k is not None:
            mend = "keep at least 1 token, or leave it out for all"
            whole_number("top_k", self.top_k, 1, mend=mend)
        self._require_choice()
        if getattr(self.walk, "erase_prompt", False):
            # A record holds the prompt as it was given, and what the model wrote behind it.
            mend = "leave it out: a record cannot say what became of the prompt (trialogue.inference.generate can)"
            raise InputError("erase_prompt", True, mend)

    def _require_choice(self) -> None:
        """Raise `InputError` where a walk would draw the one token that is left for ever."""
        # That it draws again after a rejection is what a walk says that needs verdicts and has no weights.
        again = self.walk.needs_verifier and self.walk.needs_verdicts and not self.walk.weighted
        for name, alone in (("temperature", 0), ("top_k", 1)):
            if again and getattr(self, name) == alone:
                mend = f"the walk {self.walk_name} would draw the same token again after every rejection: "
                raise InputError(name, getattr(self, name), mend + "leave more than one token to draw from")

    def sampling(self) -> dict[str, Any]:
        """What decides the samples of a prompt, as JSON values: two runs that agree in it continue each other."""
        chosen = {name: getattr(self, name) for name in _CHOSEN}
        fields = {f"{self.walk_name} {name}": value for name, value in asdict(self.walk).items()}
        values = {"walk": self.walk_name, **fields, **self.verifier.sampling(), "stop": self.stop, **chosen}
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain


def digest(sampling: dict[str, Any]) -> str:
    """A short name of what decides the samples."""
    return hashlib.sha256(json.dumps(sampling, sort_keys=True).encode()).hexdigest()[:12]
