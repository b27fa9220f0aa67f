"""The model and the prompts that a run of `trialogue generate` is asked for."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from trialogue.errors import InputError, require_text
from trialogue.generation.prompts import Prompt, numbered, read_prompts


@dataclass(frozen=True)
class Inputs:
    """The model, and the prompts that it continues."""

    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """Hub id, folder, GGUF file, or a name of `trialogue models list`."""
    prompt: Annotated[tuple[str, ...], arg(metavar="TEXT")] = ()
    """A text to continue; may come again."""
    prompts: Annotated[str | None, arg(metavar="FILE")] = None
    """JSON lines, or - for standard input: TEXT, {"prompt": TEXT}, or {"messages": [...]}, which goes into the chat
    template. A line may have an "id", which keeps the samples of a prompt the same whatever comes before it, a "rule",
    a verifier of its own with files relative to the folder of FILE, "metadata", which its records repeat, and "tools"
    for the template."""
    chat: bool = False
    """Put each prompt into the model's chat template."""
    system: Annotated[str | None, arg(metavar="TEXT")] = None
    """A system message before each prompt that goes into the chat template."""

    def __post_init__(self) -> None:
        if self.model is None:
            hint = "name one: a hub id, a folder, or one of `trialogue models list`"
            raise InputError("model", None, hint)
        if self.prompt and self.prompts is not None:
            hint = f"--prompts {self.prompts} is given too: leave out one of them"
            raise InputError("prompt", self.prompt[0], hint)
        if not self.prompt and self.prompts is None:
            raise InputError("prompt", None, "give --prompt TEXT or --prompts FILE.jsonl")
        if self.system is not None:
            require_text("system", self.system)

    def read(self) -> tuple[Prompt, ...]:
        """The prompts; raises `InputError` for a file that holds none, or anything else."""
        prompts = tuple(numbered(self.prompt) if self.prompts is None else read_prompts(self.prompts))
        if self.system is not None and not self.chat and any(one.messages is None for one in prompts):
            hint = "it is for the chat template: give --chat too, or all prompts as messages"
            raise InputError("system", self.system, hint)
        return prompts
