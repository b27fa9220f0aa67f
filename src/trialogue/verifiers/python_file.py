"""A function or a pydantic model in a Python file of the user's own as a verifier."""

from pathlib import Path

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.file_function import FileFunction
from trialogue.verifiers.function import FunctionVerifier, Scope, TextVerifier
from trialogue.verifiers.grammar import GrammarVerifier
from trialogue.verifiers.schemas.languages import Whitespace
from trialogue.verifiers.schemas.models import model_language
from trialogue.verifiers.user_files import importable, module_of, own_names


def python_verifier(
    path: str | Path,
    name: str,
    tokenization: Tokenization | None = None,
    scope: Scope = "completion",
    *,
    whole: bool = False,
    timeout: float | None = None,
) -> TextVerifier | FunctionVerifier:
    """The function `name` of the Python file at `path`, which is run, as a verifier.

    It is a `TextVerifier` where there is a `tokenization`, else a `FunctionVerifier`; the other arguments are theirs.
    File and function run in a process of their own (`FileFunction`), which ends where a call takes longer than
    `timeout` seconds, whatever it is doing, and is begun anew, the file included, for the next call.
    As in a script, modules in the file's folder can be imported, also by the function when it is called; those that
    another file imported from its own folder are not seen. What the file prints goes to standard error.
    Raises `InputError` where there is no such file or function, or the file cannot be run.
    """
    function = FileFunction(path, name)
    if tokenization is None:
        return FunctionVerifier(function, scope, whole=whole, timeout=timeout, most=function.most)
    return TextVerifier(function, tokenization, scope, whole=whole, timeout=timeout, most=function.most)


def pydantic_verifier(
    path: str | Path,
    name: str,
    tokenization: Tokenization,
    *,
    whitespace: Whitespace = "compact",
    timeout: float | None = None,
    memory: int = 4096,
) -> GrammarVerifier:
    """The verifier that `GrammarVerifier.pydantic` makes of the model `name` of the Python file at `path`.

    The file and the model's validators are run as `python_verifier` says of a file and its function, but in this
    process: validated instances are what texts stand for.
    Raises `InputError` where there is no such file or model, or the file cannot be run.
    """
    file = Path(path).resolve()
    module = module_of("pydantic", file, str(path))
    if not hasattr(module, name):
        known = ", ".join(own_names(module, lambda value: isinstance(value, type))) or "none"
        raise InputError("pydantic", f"{path}:{name}", f"the file has no such class; its classes: {known}")
    language = model_language(
        getattr(module, name), whitespace, timeout, around=lambda: importable(file.parent), name=name
    )
    return GrammarVerifier(language, tokenization, memory, "pydantic")
