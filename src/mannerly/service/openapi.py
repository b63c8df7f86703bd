"""The OpenAPI document of the API, made from its operations and the types of their values."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import msgspec

import mannerly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .operations import Operation

_REFERENCE = "#/components/schemas/{name}"
_PROBLEM = {
    "type": "object",
    "description": "A request that cannot be served (RFC 9457).",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["title", "status", "detail"],
}


def openapi(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document for these operations."""
    shapes = [each for one in operations for each in (one.request, one.answer) if each is not None]
    unique = list(dict.fromkeys(shapes))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REFERENCE)
    schema_of = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mannerly",
            "version": mannerly.__version__,
            "description": "Crawls as jobs: create them, watch them, steer them.",
        },
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _described(one: Operation, schema_of: dict[type, dict[str, Any]]) -> dict[str, Any]:
    text = inspect.getdoc(one.handler) or ""
    content = {} if one.answer is None else {"application/json": {"schema": schema_of[one.answer]}}
    problem = {"schema": {"$ref": _REFERENCE.format(name="Problem")}}
    described: dict[str, Any] = {
        "operationId": one.handler.__name__,
        "summary": text.partition("\n")[0],
        "parameters": [
            *(_parameter(name, "path") for name in re.findall(r"{(\w+)}", one.path)),
            *(_parameter(name, "query") for name in one.query),
        ],
        "responses": {
            str(one.status.value): {"description": one.status.phrase, "content": content},
            "4XX": {
                "description": "The request is wrong.",
                "content": {"application/problem+json": problem},
            },
        },
    }
    if one.request is not None:
        body = {"application/json": {"schema": schema_of[one.request]}}
        described["requestBody"] = {"required": True, "content": body}
    return described


def _parameter(name: str, place: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "schema": {"type": "string"},
    }
