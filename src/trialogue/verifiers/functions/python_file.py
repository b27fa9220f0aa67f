"""Verifiers from a function or a pydantic model in a user's Python file."""

from pathlib import Path

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.functions.file_function import FileFunction
from trialogue.verifiers.functions.function import FunctionVerifier, Scope, TextVerifier
from trialogue.verifiers.functions.user_files import defined_names, importing_from, load_module
from trialogue.verifiers.languages.grammar import GrammarVerifier
from trialogue.verifiers.schemas.languages import Whitespace
from trialogue.verifiers.schemas.models import model_language


def python_verifier(
    path: str | Path,
    name: str,
    tokenization: Tokenization | None = None,
    scope: Scope = "completion",
    *,
    whole: bool = False,
    timeout: float | None = None,
) -> TextVerifier | FunctionVerifier:
    """Create a verifier from a function in a Python file.

    The file and every call of the function are executed in a separate process. After a call that takes longer
    than `timeout`, a new process executes the file again. As in a script, the file can import modules from
    its folder.

    Args:
        path: Path of the Python file.
        name: Name of the function.
        tokenization: Tokenization that converts token ids to text. If given, the function receives text.
            Otherwise it receives a tuple of token ids.
        scope: "sequence" passes prompt and completion to the function, "completion" only the completion
            (default).
        whole: Whether to call the function for complete sequences only. Prefixes then have the value 1.
        timeout: Maximum duration of a call in seconds (default: no limit).

    Returns:
        A `TextVerifier` if `tokenization` is given, else a `FunctionVerifier`.

    Raises:
        InputError: If the file or the function does not exist, or the file cannot be executed.
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
    """Create a `GrammarVerifier` from a pydantic model in a Python file.

    The file and the validators of the model are executed in the current process, because the parser of the verifier
    returns instances of the model. Modules in the folder of the file can be imported. Output is redirected to standard
    error.

    Args:
        path: Path of the Python file.
        name: Name of the model.
        tokenization: Tokenization of the language model.
        whitespace: "compact" (default) allows no white space between the tokens of JSON, "flexible" allows all white
            space that JSON permits.
        timeout: Maximum duration of the validation of one text in seconds (default: no limit).
        memory: Number of completions whose token masks are cached (default: 4096).

    Raises:
        InputError: If the file or the model does not exist, or the file cannot be executed.
    """
    file = Path(path).resolve()
    module = load_module("pydantic", file, str(path))
    if not hasattr(module, name):
        known = ", ".join(defined_names(module, lambda value: isinstance(value, type))) or "none"
        raise InputError("pydantic", f"{path}:{name}", f"the file has no such class; its classes: {known}")
    language = model_language(
        getattr(module, name), whitespace, timeout, around=lambda: importing_from(file.parent), name=name
    )
    return GrammarVerifier(language, tokenization, memory, "pydantic")
