"""Tool calls: the format is taken from the chat template, arguments are validated, and `parser` returns both."""

import json

import pytest

from refusals import expect_error
from samplers.judged_texts import TOKENS, tokenization, value
from trialogue.verifiers import GrammarVerifier

TAGGED = (
    "{% for m in messages %}<s>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ '\\n<tool_call>\\n{' }}"
    '"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}</s>\n{% endfor %}"
)
LISTED = (
    '{% for m in messages %}{% if m.tool_calls %}<pad>[{% for c in m.tool_calls %}{"name": "{{ c.function.name }}", '
    '"arguments": {{ c.function.arguments | tojson }}, "id": "{{ c.id }}"}{% endfor %}]</s>'
    "{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
)
NAMED = (
    "{% for m in messages %}{{ m.role }}:{% if m.tool_calls %}{% for c in m.tool_calls %}"
    "<function={{ c.function.name }}>{{ c.function.arguments | tojson(separators=(',', ':')) }}</function>{% endfor %}"
    "{% else %}{{ m.content }}{% endif %}</s>{% endfor %}"
)
SPECIAL = TAGGED.replace("</tool_call>", "<pad></tool_call>").replace('"name"', '<pad>"name"')
REFUSING = "{% if messages[1].tool_calls %}{{ raise_exception('no tools') }}{% endif %}" + TAGGED
MARKED = (
    "{% for m in messages %}<|START|>{{ m.role }}{% if m.tool_calls %}<|START_ACTION|>"
    '[{"tool_name": "{{ m.tool_calls[0].function.name }}", '
    '"parameters": {{ m.tool_calls[0].function.arguments | tojson }}}]<|END_ACTION|>'
    "{% else %}<|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>{% endif %}<|END|>{% endfor %}"
)
ACTING = (
    "{% for m in messages %}{{ m.role }}:<msg>{% if m.tool_calls %}<c>{{ m.tool_calls[0].function.name }}:"
    "{{ m.tool_calls[0].function.arguments | tojson }}</c></turn>"
    "{% else %}<a>{{ m.content }}</a></turn>{% endif %}</s>{% endfor %}"
)
PROMPTING = ACTING + "{% if add_generation_prompt %}assistant:{% endif %}"
COUNTING = NAMED.replace("<function=", "<{{ c.function.name | length }}=")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "maximum": 3}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "name": "stop"},
    {"name": "weather_now", "input_schema": {"properties": {"in": {"type": "array", "uniqueItems": True}}}},
]
FORMATS = {
    "in tags": (TAGGED, '\n<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>', " "),
    "in a list": (LISTED, '[{"name": "%s", "arguments": %s, "id": "Ab3dEf6h9"}]', " "),
    "by name": (NAMED, "<function=%s>%s</function>", ""),
    "not stated": (None, '{"name":"%s","arguments":%s}', ""),
    "not stated by a template": (
        "{% for m in messages %}{{ m.content }}{% endfor %}",
        '{"name":"%s","arguments":%s}',
        "",
    ),
    "in special tokens": (SPECIAL, '{"name":"%s","arguments":%s}', ""),
    "in markers": (MARKED, '<|START_ACTION|>[{"tool_name": "%s", "parameters": %s}]<|END_ACTION|>', " "),
    "markers around replies": (ACTING, "<c>%s:%s</c></turn>", " "),
    "after the prompt": (PROMPTING, "<msg><c>%s:%s</c></turn>", " "),
    "different for every name": (COUNTING, '{"name":"%s","arguments":%s}', ""),
    "rejected by the template": (REFUSING, '{"name":"%s","arguments":%s}', ""),
}
CALLS = [
    ("weather", {"city": "Rome"}, True),
    ("weather", {"city": "Oslo", "days": 3}, True),
    ("weather", {"city": "Oslo", "days": 4}, False),
    ("weather", {}, False),
    ("weather", {"city": "Rome", "in": []}, False),
    ("stop", {}, True),
    ("stop", {"a": 1}, False),
    ("weather_now", {"in": [1, 2]}, True),
    ("weather_now", {"in": [1, 1]}, False),
    ("sing", {}, False),
]


def mistakes(form: str) -> int:
    """Return the number of `CALLS` that are judged or parsed incorrectly."""
    template, call, space = FORMATS[form]
    verifier, wrong = GrammarVerifier.tools(TOOLS, tokenization(template)), 0
    for name, arguments, valid in CALLS:
        text = call % (name, json.dumps(arguments, separators=("," + space, ":" + space)))
        wrong += value(verifier, text) != valid
        if valid:
            wrong += verifier.parser(text) != {"name": name, "arguments": arguments}
    return wrong


@pytest.mark.parametrize("form", FORMATS)
def test_calls_follow_the_format_of_the_template(form):
    assert mistakes(form) == 0


@pytest.mark.parametrize("form", FORMATS)
def test_several_calls_follow_the_template_if_it_allows_them(form):
    template, call, space = FORMATS[form]
    verifier = GrammarVerifier.tools(TOOLS, tokenization(template), parallel=True)
    separator = "" if form in ("in tags", "by name") else "\n"
    valid = [(name, arguments) for name, arguments, valid in CALLS if valid]
    texts = [call % (name, json.dumps(one, separators=("," + space, ":" + space))) for name, one in valid]
    calls = [{"name": name, "arguments": arguments} for name, arguments in valid]
    assert value(verifier, texts[0])
    assert verifier.parser(texts[0]) == calls[:1]
    whole = separator.join(texts)
    is_possible = form in ("in tags", "by name") or call == FORMATS["not stated"][1]
    assert value(verifier, whole) == is_possible
    if is_possible:
        assert verifier.parser(whole) == calls
        invalid = call % (
            "weather",
            json.dumps({"city": "Oslo", "days": 4}, separators=("," + space, ":" + space)),
        )
        assert not value(verifier, separator.join([*texts, invalid]))


@pytest.mark.parametrize("form", ["in tags", "not stated"])
def test_a_text_with_a_schema_may_replace_the_call(form):
    template, call, _ = FORMATS[form]
    schema = {"type": "object", "properties": {"note": {"type": "string"}, "name": {"type": "integer"}}}
    verifier = GrammarVerifier.tools(TOOLS, tokenization(template), answer=schema)
    assert verifier.parser(call % ("stop", "{}")) == {"name": "stop", "arguments": {}}
    for text in (call % ("stop", "{}"), '{"note":"a"}', '{"name":3}', "{}"):
        assert value(verifier, text), text
    assert not value(verifier, '{"name":"x"}')
    assert verifier.parser('{"note":"a"}') == {"note": "a"}


def test_calls_in_the_format_of_another_template_are_rejected():
    for form, (template, _, _) in FORMATS.items():
        verifier = GrammarVerifier.tools(TOOLS, tokenization(template))
        for other, (_, call, _) in FORMATS.items():
            same = call == FORMATS[form][1]
            assert value(verifier, call % ("stop", "{}")) == same, (form, other)


def test_notes_describe_the_format_and_late_checks():
    for form, note in (
        (
            "in a list",
            "the prompt must end with '<pad>', because the chat template begins a tool call with it",
        ),
        ("not stated", "the chat template defines no usable format for tool calls; calls are"),
        (
            "in tags",
            "weather_now: the grammar does not enforce uniqueItems, which is checked when a text is complete",
        ),
    ):
        notes = GrammarVerifier.tools(TOOLS, tokenization(FORMATS[form][0])).notes
        assert notes[0].startswith(note)
        assert len(notes) == 2 - (form == "in tags")


def test_flexible_whitespace_applies_to_arguments_only():
    verifier = GrammarVerifier.tools(TOOLS, tokenization(TAGGED), whitespace="flexible")
    call = FORMATS["in tags"][1]
    assert value(verifier, call % ("weather", '{ "city":\n"Rome" }'))
    assert not value(verifier, (call % ("weather", '{"city": "Rome"}')).replace('"name": ', '"name":'))


UNUSABLE = [
    ([], "tools=[]: pass a non-empty list of tool definitions"),
    ("[", "tools='[': it is not valid JSON"),
    ([{"type": "object", "properties": {}}], 'write each definition as {"type": "function"'),
    ([{"type": "function", "name": 'a"'}], "tools='a\"': use only letters, digits"),
    ([TOOLS[1], TOOLS[1]], "tools='stop': use a unique name for each tool"),
    (
        [{"name": "f", "parameters": {"properties": {"a": {"type": "nul"}}}}],
        "tools='f': $.properties.a.type: 'nul' is not one of ['array', 'boolean'",
    ),
]


def test_invalid_tools_are_reported_in_one_line():
    for tools, message in UNUSABLE:
        assert message in str(expect_error("", GrammarVerifier.tools, tools, TOKENS))
