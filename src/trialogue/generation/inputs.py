"""Options of `trialogue generate` that select the model and the prompts."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from trialogue.errors import InputError, require_model, require_text
from trialogue.generation.prompts import Prompt, prompts_from_texts, read_prompts


@dataclass(frozen=True)
class Inputs:
    """Options that select the model and the prompts."""

    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """Load this model: a Hugging Face id, a folder, a GGUF file, or a name from `trialogue models list`."""
    prompt: Annotated[tuple[str, ...], arg(metavar="TEXT")] = ()
    """Continue this text. Repeat the option for more prompts."""
    prompts: Annotated[str | None, arg(metavar="FILE")] = None
    """Read prompts from this JSON Lines file, or from standard input if FILE is -. Each line is a string, an object
    with a "prompt", or an object with "messages" for the chat template. Optional keys: "id" (seeds the samples of the
    prompt, default: line number), "rule" (a verifier for this prompt; paths are relative to the folder of FILE),
    "metadata" (copied to the output), "tools" (for the chat template)."""
    chat: bool = False
    """Apply the model's chat template to each prompt."""
    system: Annotated[str | None, arg(metavar="TEXT")] = None
    """Put this system message before each prompt that uses the chat template."""

    def __post_init__(self) -> None:
        require_model(self.model)
        if self.prompt and self.prompts is not None:
            hint = f"leave out either --prompt or --prompts {self.prompts}"
            raise InputError("prompt", self.prompt[0], hint)
        if not self.prompt and self.prompts is None:
            raise InputError("prompt", None, "use --prompt TEXT or --prompts FILE.jsonl")
        if self.system is not None:
            require_text("system", self.system)

    def read(self) -> tuple[Prompt, ...]:
        """Return the prompts that these options specify.

        Returns:
            The texts of the option `prompt`, or the prompts in the file of the option `prompts`.

        Raises:
            InputError: If the file of prompts is empty, or if a line is invalid.
        """
        prompts = tuple(
            prompts_from_texts(self.prompt) if self.prompts is None else read_prompts(self.prompts)
        )
        if self.system is not None and not self.chat and any(one.messages is None for one in prompts):
            hint = "add --chat or use messages in all prompts: it applies only to the chat template"
            raise InputError("system", self.system, hint)
        return prompts
