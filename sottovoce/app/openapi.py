"""The OpenAPI document, and the same as a plain page: no script, nothing from elsewhere.

What answers hold is not written down a second time. It is taken from the types that they are made
of: the TypedDicts of this package, and by :class:`Like` the results of the library.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATE = Path(__file__).with_name("docs.html")
DESCRIPTION = (
    "Search, and release text, without saying what you really mean out loud. The service runs on "
    "your own machine. Texts travel in bodies only, never in addresses. Calls that change "
    "something, or show what was typed, need the token that the start printed, in the header "
    "X-Sottovoce-Token or as Authorization: Bearer."
)
FAILURES = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site.",
    404: "There is no such preview any more.",
    408: "The body came too slowly.",
    409: "The budget is spent, the query has left in another way, or the preview is another one.",
    413: "The body is too large.",
    415: "The body is packed.",
    421: "The service does not answer to this host name.",
    422: "A field is missing, unknown or out of bounds.",
    429: "Too many requests.",
    502: "The search engine failed.",
    503: "Too much is waiting, or something has to be set up first.",
    504: "No answer in time.",
}


class Failure(TypedDict):
    """What went wrong, and what to do; it never holds what was sent."""

    error: str
    kind: str


# What answers hold


@dataclass(frozen=True)
class Like:
    """In an annotation: a dictionary with the fields of a result, as its ``to_dict`` writes them.

    ``without`` are fields that it leaves out, ``more`` the names and types of fields that are added
    here; ``name`` and ``meaning`` are those of the result unless given.
    """

    kind: type[Any]
    without: tuple[str, ...] = ()
    more: tuple[tuple[str, Any], ...] = ()
    name: str | None = None
    meaning: str | None = None

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(_model(self))


@cache
def _model(like: Like) -> type[BaseModel]:
    """A model whose fields are those of a dataclass or named tuple."""
    fields: dict[str, Any] = {
        name: (_json_type(kind), ...)
        for name, kind in get_type_hints(like.kind).items()
        if name not in like.without
    }
    fields |= {name: (kind, ...) for name, kind in like.more}
    return create_model(
        like.name or like.kind.__name__,
        __config__=ConfigDict(extra="allow"),
        __doc__=like.meaning or (like.kind.__doc__ or "").partition("\n\n")[0],
        **fields,
    )


def _json_type(kind: Any) -> Any:
    """The type in JSON: lists for tuples, objects for dataclasses and named tuples."""
    arguments = tuple(map(_json_type, get_args(kind)))
    if get_origin(kind) is tuple:
        return list[arguments[0]]  # type: ignore[valid-type]
    if get_origin(kind) in (Union, types.UnionType):
        return Union[arguments]  # noqa: UP007 - made at run time
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _model(Like(kind))
    return kind


def documented(answer: Like | type[Any], *, streams: bool = False) -> dict[str, Any]:
    """The documentation of a route that answers like this, for FastAPI."""
    model = _model(answer) if isinstance(answer, Like) else answer
    responses: dict[int | str, dict[str, Any]] = {
        status: {"model": Failure, "description": sentence} for status, sentence in FAILURES.items()
    }
    responses[200] = {"model": model, "description": (model.__doc__ or "").strip()}
    if streams:
        responses[200]["content"] = {
            "application/x-ndjson": {
                "schema": {
                    "type": "string",
                    "description": "One JSON event a line; the last has step done or failed.",
                }
            }
        }
    return {"responses": responses}


# The page


def render(document: dict[str, Any]) -> str:
    """The document as a page."""
    return _template().render(document=document, operations=list(_operations(document)))


@cache
def _template() -> Template:
    from jinja2 import Environment

    return Environment(autoescape=True).from_string(TEMPLATE.read_text("utf-8"))


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            answer = operation["responses"]["200"].get("content", {}).get("application/json", {})
            yield {
                "method": method.upper(),
                "path": path,
                "description": operation.get("description", ""),
                "token": bool(operation.get("security")),
                "fields": list(_fields(body.get("schema", {}), document)),
                "answer": list(_fields(answer.get("schema", {}), document)),
                "failures": {
                    status: response["description"]
                    for status, response in operation["responses"].items()
                    if status != "200"
                },
            }


def _fields(schema: dict[str, Any], document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The fields of an object: name, type and bounds in words, whether it must be there."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][_last_part(schema["$ref"])]
    for name, field in schema.get("properties", {}).items():
        yield {
            "name": name,
            "type": _type(field),
            "required": name in schema.get("required", ()),
            "description": field.get("description", ""),
            "default": field.get("default"),
        }


def _last_part(reference: str) -> str:
    return reference.rsplit("/", 1)[-1]


def _type(schema: dict[str, Any]) -> str:
    """The type of a field in words."""
    if "$ref" in schema:
        return _last_part(schema["$ref"])
    if choices := schema.get("anyOf"):
        return " or ".join(map(_type, choices))
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    bounds = {
        "minimum": "from {:g}",
        "exclusiveMinimum": "above {:g}",
        "maximum": "to {:g}",
        "exclusiveMaximum": "below {:g}",
        "maxLength": "at most {:,} characters",
    }
    parts = [text.format(schema[key]) for key, text in bounds.items() if key in schema]
    return " ".join([str(schema.get("type", "anything")), *parts])
