"""``conversion.yaml``: a converter made of declarative rules only, without Python code.

``loading.py`` calls this module to read such a file::

    conversion: instar/v1
    group: example.com
    kind: CronTab
    hub: v1
    pairs:
      - between: [v1beta1, v1]
        rules:
          - split: {path: hostPort, template: "{host}:{port}"}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from instar.tools.sdk import rules
from instar.tools.sdk.converter import Converter
from instar.tools.sdk.errors import ConverterDefinitionError
from instar.tools.sdk.rules import ConversionRule

FORMAT = "instar/v1"

_Fields = Mapping[str, bool]
_RULES: dict[str, tuple[Callable[..., ConversionRule], _Fields]] = {
    "move": (rules.move, {"old": True, "new": True}),
    "wrap": (rules.wrap, {"path": True, "field": True, "side": False}),
    "split": (rules.split, {"path": True, "template": True, "unmatched": False}),
    "join": (rules.join, {"template": True, "path": True, "unmatched": False}),
    "list_of_one": (rules.list_of_one, {"old": True, "new": True}),
    "enum": (rules.enum, {"old": True, "mapping": True, "new": False}),
    "scale": (rules.scale, {"old": True, "new": True, "factor": True}),
    "list_to_map": (rules.list_to_map, {"old": True, "new": True, "key": True}),
    "map_to_list": (rules.map_to_list, {"old": True, "new": True, "key": True}),
    "constant": (rules.constant, {"path": True, "value": True, "side": False}),
    "keep": (rules.keep, {"path": True, "side": False}),
    "lossy": (rules.lossy, {"path": True, "reason": True, "side": False}),
}
_CHOICES = {"side": ("old", "new"), "unmatched": ("error", "keep")}


def converter_from(document: Any, name: str = "conversion.yaml") -> Converter:
    """Build a converter from the parsed file; ``name`` is used in error messages only."""
    top = _mapping(document, name)
    if top.get("conversion") != FORMAT:
        raise ConverterDefinitionError(f"{name}: it must say 'conversion: {FORMAT}'")
    unknown = sorted(set(top) - {"conversion", "group", "kind", "hub", "versions", "pairs"})
    if unknown:
        raise ConverterDefinitionError(f"{name}: unknown field {', '.join(map(str, unknown))}")
    converter = Converter(
        _text(top, "kind", name),
        group=_text(top, "group", name),
        hub=_text(top, "hub", name) if "hub" in top else None,
        versions=_strings(top.get("versions", []), f"{name}: versions"),
    )
    for position, pair in enumerate(_items(top.get("pairs"), f"{name}: pairs")):
        _add_pair(converter, pair, f"{name}: pairs[{position}]")
    return converter


def _add_pair(converter: Converter, raw: Any, where: str) -> None:
    pair = _mapping(raw, where)
    versions = _strings(pair.get("between"), f"{where}.between")
    if len(versions) != 2:
        raise ConverterDefinitionError(f"{where}.between must name two versions, old and new")
    listed = _items(pair.get("rules", []), f"{where}.rules")
    parsed = [_rule(item, f"{where}.rules[{index}]") for index, item in enumerate(listed)]
    converter.between(*versions, rules=parsed)


def _rule(raw: Any, where: str) -> ConversionRule:
    item = _mapping(raw, where)
    if len(item) != 1 or next(iter(item)) not in _RULES:
        known = ", ".join(_RULES)
        raise ConverterDefinitionError(f"{where} must hold exactly one of {known}")
    [(word, body)] = item.items()
    build, fields = _RULES[word]
    arguments = _mapping(body, f"{where}.{word}")
    for name in arguments:
        if name not in fields:
            raise ConverterDefinitionError(f"{where}.{word} has no field {name!r}")
    for name, required in fields.items():
        if required and name not in arguments:
            raise ConverterDefinitionError(f"{where}.{word} needs {name!r}")
    for name, allowed in _CHOICES.items():
        if name in arguments and arguments[name] not in allowed:
            raise ConverterDefinitionError(
                f"{where}.{word}.{name} must be one of {', '.join(allowed)}"
            )
    try:
        return build(**arguments)
    except ConverterDefinitionError as error:
        raise ConverterDefinitionError(f"{where}: {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ConverterDefinitionError(f"{where}.{word}: {error}") from None


def _mapping(value: Any, where: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ConverterDefinitionError(f"{where} must be a mapping")
    return value


def _items(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConverterDefinitionError(f"{where} must be a list")
    return value


def _strings(value: Any, where: str) -> list[str]:
    listed = _items(value, where)
    if not all(isinstance(item, str) for item in listed):
        raise ConverterDefinitionError(f"{where} must hold strings")
    return listed


def _text(top: Mapping[Any, Any], field: str, name: str) -> str:
    value = top.get(field)
    if not isinstance(value, str) or not value:
        raise ConverterDefinitionError(f"{name}: {field} must be a string")
    return value
