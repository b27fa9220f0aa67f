"""The draft of JSON Schema that a schema is written in, whether it is one of that draft, and what it refers to."""

from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema import (
    Draft3Validator,
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from trialogue.verifiers.schemas.keywords import EFFECTIVE, Subschema, pointer, subschemas, within

_DRAFTS: dict[type[Validator], str] = {
    Draft202012Validator: "draft 2020-12",
    Draft201909Validator: "draft 2019-09",
    Draft7Validator: "draft 7",
    Draft6Validator: "draft 6",
    Draft4Validator: "draft 4",
}
_UNSTATED = extend(Draft202012Validator)
_HARMLESS = {"uniqueItems", "format"}
"""What a draft asks of schemas without which their meaning is as clear: that an enum lists nothing twice."""


class SchemaMistake(ValueError):
    """What is wrong in a schema, and where: a line without the schema itself."""


def dialect_of(schema: dict[str, Any]) -> type[Validator]:
    """The validator of the draft of `schema`, whose `$schema` names it.

    Where that names none, it is the latest draft that has all of its keywords, of those under which it is a schema.
    Raises `SchemaMistake` with the path of what no draft, or not the one that is named, allows.
    """
    stated = validator_for(schema, default=_UNSTATED)
    if stated is Draft3Validator:
        raise SchemaMistake("$schema: draft 3 is older than what is supported: write it in draft 4 or later")
    if stated is not _UNSTATED:
        _check(schema, stated)
        return stated
    used = {key for _, one in subschemas(schema) for key in one.keys() & EFFECTIVE}
    listed = any(isinstance(one.get("items"), list) for _, one in subschemas(schema))
    drafts = sorted(_DRAFTS, key=lambda draft: len(used - set(draft.VALIDATORS)))
    if listed:
        # Valid under every draft but the latest, whose metaschema a definition without a type may escape.
        drafts.sort(key=lambda draft: draft is Draft202012Validator)
    for draft in drafts:
        if _mistake(schema, draft) is None:
            return draft
    _check(schema, drafts[0])
    raise AssertionError("the first draft was refused before")


def identifier(dialect: type[Validator]) -> str:
    """What `$schema` says of schemas that `dialect` validates."""
    return str(dialect.META_SCHEMA.get("$id", dialect.META_SCHEMA.get("id")))


def references_stand_alone(dialect: type[Validator]) -> bool:
    """Whether keywords beside `$ref` have no effect in the draft of `dialect`."""
    return dialect in (Draft4Validator, Draft6Validator, Draft7Validator)


def draft_named(dialect: type[Validator]) -> str:
    """The draft that `dialect` validates, in words."""
    return _DRAFTS[dialect]


def _check(schema: dict[str, Any], draft: type[Validator]) -> None:
    mistake = _mistake(schema, draft)
    if mistake is not None:
        raise SchemaMistake(mistake)


def _mistake(schema: Any, draft: type[Validator], path: tuple[str, ...] = ()) -> str | None:
    metaschema = draft(draft.META_SCHEMA)
    error = best_match(one for one in metaschema.iter_errors(schema) if one.validator not in _HARMLESS)
    if error is None:
        return None
    return f"{pointer((*path, *error.absolute_path))}: {error.message} ({_DRAFTS[draft]})"


def resolved(schema: dict[str, Any], dialect: type[Validator]) -> list[Subschema]:
    """`schema`, every schema in it, and what else its references lead to.

    Raises `SchemaMistake` for a reference that leads out of the schema, and not to a metaschema, to nothing or to no
    schema, or back to itself: nothing is ever fetched.
    """
    specification = specification_with(identifier(dialect))
    own, found, checked = _objects(schema), dict[int, Subschema](), {id(schema)}
    same = dict[int, list[Any]]()
    root: tuple[str, ...] = ()
    waiting = [(root, schema, REGISTRY.resolver_with_root(specification.create_resource(schema)))]
    while waiting:
        path, one, resolver = waiting.pop()
        if not isinstance(one, dict) or id(one) in found or id(one) not in own:
            continue
        found[id(one)] = Subschema(path, one)
        if isinstance(one.get("allOf"), list):
            same[id(one)] = one["allOf"]
        resolver = resolver.in_subresource(specification.create_resource(one))
        waiting += reversed([((*path, *keys), inner, resolver) for keys, inner in within(one)])
        for keyword in ("$ref", "$dynamicRef"):
            reference = one.get(keyword)
            if keyword not in dialect.VALIDATORS or not isinstance(reference, str):
                continue
            try:
                target = resolver.lookup(reference)
            except (Unresolvable, ValueError):
                where = pointer((*path, keyword))
                hint = "nothing is fetched, and the schema itself has no such place: put it into $defs"
                raise SchemaMistake(f"{where} leads to {reference!r}: {hint}") from None
            place = _place(reference)
            foreign = isinstance(target.contents, dict) and id(target.contents) not in own
            if id(target.contents) not in checked and not foreign:
                # The metaschema visits what stands where it expects a schema, and a reference may lead elsewhere.
                mistake = _mistake(target.contents, dialect, place)
                if mistake is not None:
                    raise SchemaMistake(mistake)
                checked.add(id(target.contents))
            if keyword == "$ref":
                beside = [] if references_stand_alone(dialect) else same.get(id(one), [])
                same[id(one)] = [*beside, target.contents]
            waiting.append((place, target.contents, target.resolver))
    looping = next((one for one in found.values() if _loops(one.schema, same)), None)
    if looping is not None:
        raise SchemaMistake(f"{pointer(looping.path)}: it refers to itself without end, and admits nothing")
    return list(found.values())


def _loops(schema: dict[str, Any], same: Mapping[int, list[Any]]) -> bool:
    """Whether `schema` is applied again to the value it is applied to; `same` are those that each so applies."""
    waiting, seen = list(same.get(id(schema), ())), set[int]()
    while waiting:
        one = waiting.pop()
        if one is schema:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            waiting += same.get(id(one), ())
    return False


def _objects(value: Any) -> set[int]:
    """The ids of all objects in `value`."""
    waiting, found = [value], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found.add(id(one))
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found


def _place(reference: str) -> tuple[str, ...]:
    """The path that `reference` names, as far as its fragment says it."""
    parts: Sequence[str] = reference.partition("#")[2].split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
