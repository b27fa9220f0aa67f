"""What makes a language: a regular expression, a Lark grammar, JSON of a schema or model, or calls of tools."""

import re
from collections.abc import Sequence
from typing import Any, Self

from llguidance import regex_to_lark

from trialogue.errors import InputError, require_text
from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.language_verifier import Language, LanguageVerifier, shortened
from trialogue.verifiers.schemas.languages import JsonSchema, Whitespace, json_language, json_value
from trialogue.verifiers.schemas.models import model_language
from trialogue.verifiers.schemas.tools import tools_language


class GrammarVerifier(LanguageVerifier):
    """The verifier of a language that is made by `regex`, `lark`, `json_schema`, `pydantic` or `tools`.

    A text of JSON is in the language where it is valid: what no grammar enforces is validated when a text is complete,
    and `notes` say what that is. Numbers and strings are in the spelling that the grammar writes: `1.0` is not in the
    language of integers, numbers with bounds have no exponents, and some no zeros at their end; in strings only what
    has to be escaped is.
    """

    @classmethod
    def regex(cls, pattern: str, tokenization: Tokenization, *, memory: int = 4096) -> Self:
        """The texts that `pattern` matches as a whole, in the syntax of Rust's regex crate.

        Classes such as `\\d` and `.` mean what they mean in Python's `re`; there are no look-arounds and no
        back-references. Raises `InputError` where the pattern does not compile or matches nothing.
        """
        require_text("regex", pattern)
        # llguidance drops a backslash with nothing behind it.
        if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
            hint = "the backslash at its end escapes nothing: leave it out, or double it to mean a backslash"
            raise InputError("regex", shortened(pattern), hint)
        grammar = f"start: /{regex_to_lark(pattern, '')}/"
        return cls(Language(grammar, shortened(pattern)), tokenization, memory, "regex")

    @classmethod
    def choice(cls, texts: Sequence[str], tokenization: Tokenization, *, memory: int = 4096) -> Self:
        """Return the verifier of a few texts, given as a list or as its JSON text.

        Raises:
            InputError: If `texts` is no list of texts, or empty.
        """
        value = json_value("choice", texts)
        if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
            raise InputError("choice", texts, "give a list of texts")
        pattern = "|".join(re.escape(text) for text in value)
        source = shortened(", ".join(value))
        return cls(Language(f"start: /{regex_to_lark(pattern, '')}/", source), tokenization, memory, "choice")

    @classmethod
    def json_schema(
        cls,
        schema: JsonSchema,
        tokenization: Tokenization,
        *,
        whitespace: Whitespace = "compact",
        memory: int = 4096,
    ) -> Self:
        """JSON texts that are valid under `schema`, a mapping or JSON text; `parser` gives their values.

        The definition of a tool or of a response's format stands for the schema in it. Properties come in the schema's
        order, and no key twice. White space is only in strings, or, if `flexible`, wherever JSON allows it, unless the
        schema has an `x-guidance` of llguidance. The draft is that of `$schema`, else the latest that fits. Other keys
        than keywords have no effect.

        Raises `InputError` with the path of what is wrong where the schema is no JSON or no schema, misspells a
        keyword, refers to what it does not hold, or admits nothing or everything.
        """
        return cls(json_language(schema, whitespace), tokenization, memory, "json-schema")

    @classmethod
    def pydantic(
        cls,
        model: Any,
        tokenization: Tokenization,
        *,
        whitespace: Whitespace = "compact",
        timeout: float | None = None,
        memory: int = 4096,
    ) -> Self:
        """JSON texts that a pydantic `model`, or another type that its `TypeAdapter` takes, validates.

        `parser` gives its instances. The grammar is that of the model's JSON schema; the model decides on complete
        texts, with the validators it has, and may take `timeout` seconds. White space is as in `json_schema`. Raises
        `InputError` where the model has no JSON schema that constrains anything, and, when asked for values, where a
        validator raises something else than pydantic expects of it.
        """
        return cls(model_language(model, whitespace, timeout), tokenization, memory, "pydantic")

    @classmethod
    def tools(
        cls,
        tools: JsonSchema | Sequence[Any],
        tokenization: Tokenization,
        *,
        whitespace: Whitespace = "compact",
        memory: int = 4096,
    ) -> Self:
        """One call of one of `tools`, definitions as OpenAI, Anthropic or MCP have them, or their JSON text.

        A call is written as the tokenizer's chat template writes it, arguments with the white space that it has there
        unless that is `flexible`; where it writes none, as `{"name":...,"arguments":...}`. `parser` gives a dictionary
        of `name` and `arguments`. Raises `InputError` that names the tool whose definition or schema is wrong.
        """
        return cls(tools_language(tools, tokenization, whitespace), tokenization, memory, "tools")

    @classmethod
    def lark(cls, grammar: str, tokenization: Tokenization, *, memory: int = 4096) -> Self:
        """The language of `start` in `grammar`, in llguidance's dialect of Lark.

        Raises `InputError` where the grammar does not compile or admits nothing.
        """
        require_text("lark", grammar)
        return cls(Language(grammar, shortened(grammar)), tokenization, memory, "lark")
