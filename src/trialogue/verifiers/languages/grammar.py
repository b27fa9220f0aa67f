"""Grammar verifiers: regular expressions, Lark grammars, JSON Schemas, pydantic models and tool calls."""

import re
from collections.abc import Sequence
from typing import Any, Self

from llguidance import regex_to_lark

from trialogue.errors import InputError, require_text
from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.languages.language_verifier import Language, LanguageVerifier, shorten
from trialogue.verifiers.schemas.languages import JsonSchema, Whitespace, json_language, json_value
from trialogue.verifiers.schemas.models import model_language
from trialogue.verifiers.schemas.tools import tools_language


class GrammarVerifier(LanguageVerifier):
    """Verifier of a formal language. It accepts complete texts of the language and prefixes of such texts.

    Create one with `regex`, `choice`, `lark`, `json_schema`, `pydantic` or `tools`. Keywords of a JSON Schema that a
    grammar cannot enforce are checked when a text is complete. The attribute `notes` lists them.

    Numbers and strings are accepted in a single spelling only. For example, `1.0` is not an integer, and bounded
    numbers have no exponents and in some cases no trailing zeros. In strings, only characters that must be escaped are
    escaped.
    """

    @classmethod
    def regex(cls, pattern: str, tokenization: Tokenization, *, memory: int = 4096) -> Self:
        r"""Create a verifier that accepts the texts matched in full by a regular expression.

        The syntax is that of Rust's regex crate, without look-around and back-references. Classes like `\d` and `.`
        have the same meaning as in Python's `re`.

        Args:
            pattern: Regular expression.
            tokenization: Tokenization of the language model.
            memory: Number of completions whose token masks are cached (default: 4096).

        Raises:
            InputError: If the pattern does not compile or matches nothing.
        """
        require_text("regex", pattern)
        # llguidance silently drops a trailing backslash.
        if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
            hint = "the trailing backslash escapes nothing; remove it, or double it to match a backslash"
            raise InputError("regex", shorten(pattern), hint)
        return cls(_regular_language(pattern, shorten(pattern)), tokenization, memory, "regex")

    @classmethod
    def choice(cls, texts: Sequence[str], tokenization: Tokenization, *, memory: int = 4096) -> Self:
        """Create a verifier that accepts the given texts.

        Args:
            texts: List of texts, or a JSON array of strings as text.
            tokenization: Tokenization of the language model.
            memory: Number of completions whose token masks are cached (default: 4096).

        Raises:
            InputError: If `texts` is empty or not a list of texts.
        """
        value = json_value("choice", texts)
        if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
            raise InputError("choice", texts, "pass a non-empty list of texts")
        pattern = "|".join(re.escape(text) for text in value)
        return cls(_regular_language(pattern, shorten(", ".join(value))), tokenization, memory, "choice")

    @classmethod
    def json_schema(
        cls,
        schema: JsonSchema,
        tokenization: Tokenization,
        *,
        whitespace: Whitespace = "compact",
        memory: int = 4096,
    ) -> Self:
        """Create a verifier that accepts the JSON texts that are valid under a JSON Schema.

        Properties must appear in the order of the schema, and no key may be repeated. The draft is given by `$schema`.
        Without `$schema`, the latest draft that supports all keywords is used. Unknown keys have no effect. `parser`
        returns the value of a text.

        Args:
            schema: Schema as a mapping or JSON text. For the definition of a tool or a response format, the schema that
                it contains is used.
            tokenization: Tokenization of the language model.
            whitespace: "compact" allows whitespace only in strings (default). "flexible" allows it wherever JSON does.
                The `x-guidance` options of llguidance in the schema take precedence.
            memory: Number of completions whose token masks are cached (default: 4096).

        Raises:
            InputError: If the schema is not valid JSON or not a valid schema, contains an unresolvable reference, or
                accepts nothing or everything. The error contains the path of the problem.
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
        """Create a verifier that accepts the JSON texts that a pydantic model validates.

        The grammar is generated from the JSON Schema of the model. Complete texts are validated by the model itself,
        including its custom validators. `parser` returns instances of the model.

        Args:
            model: Pydantic model, or another type that `pydantic.TypeAdapter` accepts.
            tokenization: Tokenization of the language model.
            whitespace: "compact" (default) allows no white space between the tokens of JSON, "flexible" allows all
                white space that JSON permits.
            timeout: Maximum duration of the validation of one text in seconds (default: no limit).
            memory: Number of completions whose token masks are cached (default: 4096).

        Raises:
            InputError: If the model has no JSON Schema, or one without constraints. During sampling, if a validator
                raises an exception that pydantic does not convert to a validation error.
        """
        return cls(model_language(model, whitespace, timeout), tokenization, memory, "pydantic")

    @classmethod
    def tools(
        cls,
        tools: JsonSchema | Sequence[Any],
        tokenization: Tokenization,
        *,
        whitespace: Whitespace = "compact",
        parallel: bool = False,
        answer: JsonSchema | None = None,
        memory: int = 4096,
    ) -> Self:
        """Create a verifier that accepts a call of one of the given tools.

        The format of the call is taken from the chat template of the tokenizer. If the template defines none, a call is
        written as `{"name":...,"arguments":...}`. `parser` returns a dictionary with the keys `name` and `arguments`,
        or with `parallel` a list of them.

        Args:
            tools: Definitions of tools in the format of OpenAI, Anthropic or MCP, or their JSON text.
            tokenization: Tokenization of the language model.
            whitespace: "compact" uses the whitespace of the chat template in the arguments (default). "flexible" allows
                whitespace wherever JSON does.
            parallel: Accept several calls (default: False, exactly one). If the chat template defines no format for
                several calls, only one is accepted.
            answer: JSON Schema of texts that are accepted instead of calls (default: none).
            memory: Number of completions whose token masks are cached (default: 4096).

        Raises:
            InputError: If a definition or a schema is invalid. The error names the tool.
        """
        language = tools_language(tools, tokenization, whitespace, parallel, answer)
        return cls(language, tokenization, memory, "tools")

    @classmethod
    def lark(cls, grammar: str, tokenization: Tokenization, *, memory: int = 4096) -> Self:
        """Create a verifier that accepts the texts of a Lark grammar.

        Args:
            grammar: Grammar with the start rule `start`, in llguidance's dialect of Lark.
            tokenization: Tokenization of the language model.
            memory: Number of completions whose token masks are cached (default: 4096).

        Raises:
            InputError: If the grammar does not compile or accepts nothing.
        """
        require_text("lark", grammar)
        return cls(Language(grammar, shorten(grammar)), tokenization, memory, "lark")


def _regular_language(pattern: str, source: str) -> Language:
    return Language(f"start: /{regex_to_lark(pattern, '')}/", source, pattern=pattern)
