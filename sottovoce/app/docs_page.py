"""The OpenAPI document as a plain page: no script, nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATE = Path(__file__).with_name("docs.html")


def render(document: dict[str, Any]) -> str:
    """The page."""
    return _template().render(document=document, operations=list(_operations(document)))


@cache
def _template() -> Template:
    from jinja2 import Environment

    return Environment(autoescape=True).from_string(TEMPLATE.read_text("utf-8"))


def _operations(document: dict[str, Any]) -> Any:
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            body = told.get("requestBody", {}).get("content", {}).get("application/json", {})
            answer = told["responses"]["200"].get("content", {}).get("application/json", {})
            yield {
                "method": method.upper(),
                "path": path,
                "description": told.get("description", ""),
                "token": bool(told.get("security")),
                "fields": list(_fields(body.get("schema", {}), document)),
                "answer": list(_fields(answer.get("schema", {}), document)),
                "failures": {
                    status: each["description"]
                    for status, each in told["responses"].items()
                    if status != "200"
                },
            }


def _fields(schema: dict[str, Any], document: dict[str, Any]) -> Any:
    """The fields of an object: name, type and bounds in words, whether it must be there."""
    schema = _resolved(schema, document)
    for name, each in schema.get("properties", {}).items():
        yield {
            "name": name,
            "type": _type(each, document),
            "required": name in schema.get("required", ()),
            "description": each.get("description", ""),
            "default": each.get("default"),
        }


def _resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return schema


def _type(schema: dict[str, Any], document: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if choices := schema.get("anyOf"):
        return " or ".join(_type(each, document) for each in choices)
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}), document)}"
    bounds = {
        "minimum": "from {:g}",
        "exclusiveMinimum": "above {:g}",
        "maximum": "to {:g}",
        "exclusiveMaximum": "below {:g}",
        "maxLength": "at most {:,} characters",
    }
    said = [text.format(schema[key]) for key, text in bounds.items() if key in schema]
    return " ".join([str(schema.get("type", "anything")), *said])
