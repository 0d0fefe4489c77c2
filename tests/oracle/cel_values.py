"""CEL types and values as the recording writes them: ``["list", "int"]``, ``["int", "5"]``."""

from __future__ import annotations

import math
from typing import Any

from instar.kube.cel.library.addresses import Cidr, Ip
from instar.kube.cel.library.formats import Format
from instar.kube.cel.library.quantity import Quantity, parse_quantity
from instar.kube.cel.library.semver import Semver
from instar.kube.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    runtime_name,
)
from instar.kube.cel.values import Duration, OptionalValue, Timestamp, TypeValue, Uint

_PRIMITIVES = {each.name: each for each in (BOOL, BYTES, DOUBLE, INT, STRING, UINT)}


def type_from(written: Any) -> Type:
    if isinstance(written, list):
        kind, *inner = written
        of = [type_from(each) for each in inner]
        return list_of(of[0]) if kind == "list" else map_of(of[0], of[1])
    return NULL if written == "null" else _PRIMITIVES[written]


def name_of(of: Type) -> str:
    """A type as the recording names it; errors call some of them otherwise."""
    inner = ", ".join(map(name_of, of.params))
    name = runtime_name(of.name)
    return f"{name}({inner})" if inner else name


def value_from(written: Any) -> Any:
    kind, content = written
    match kind:
        case "list":
            return [value_from(item) for item in content]
        case "map":
            return {value_from(name): value_from(item) for name, item in content}
        case "bytes":
            return bytes.fromhex(content)
        case "int":
            return int(content)
        case "uint":
            return Uint(content)
        case "double":
            return float(content)
    return content


def written(value: Any) -> list[Any]:
    """One of our values as the recording would have it."""
    match value:
        case bool():
            return ["bool", value]
        case None:
            return ["null", None]
        case str():
            return ["string", value]
        case bytes():
            return ["bytes", value.hex()]
        case Uint():
            return ["uint", str(int(value))]
        case int():
            return ["int", str(value)]
        case float():
            return ["double", "nan" if math.isnan(value) else float(value)]
        case list():
            return ["list", [written(item) for item in value]]
        case dict():
            return ["map", sorted([written(n), written(v)] for n, v in value.items())]
        case Duration():
            return ["duration", value.nanos]
        case Timestamp():
            return ["timestamp", ":".join(map(str, divmod(value.nanos, 10**9)))]
        case TypeValue():
            return ["type", value.name]
        case OptionalValue():
            return ["optional", written(value.content) if value.present else None]
    return _opaque(value)


def _opaque(value: Any) -> list[Any]:
    match value:
        case Ip():
            return ["net.IP", str(value.address)]
        case Cidr():
            return ["net.CIDR", f"{value.address}/{value.bits}"]
        case Semver():
            return ["kubernetes.Semver", str(value)]
        case Quantity():
            return ["kubernetes.Quantity", value.amount]
        case Format():
            return ["kubernetes.NamedFormat", value.name]
    return [type(value).__name__, repr(value)]


def normal(recorded: Any) -> Any:
    """A recorded value in the form ``written`` gives: doubles as numbers, maps in order."""
    kind, content = recorded
    match kind:
        case "double":
            number = float(content.replace("Inf", "inf"))
            return [kind, "nan" if math.isnan(number) else number]
        case "duration":
            return [kind, int(content)]
        case "kubernetes.Quantity":
            return [kind, parse_quantity(content).amount]
        case "list":
            return [kind, [normal(item) for item in content]]
        case "map":
            return [kind, sorted([normal(name), normal(item)] for name, item in content)]
        case "optional":
            return [kind, None if content is None else normal(content)]
    return [kind, content]
