"""Reads the fields of a model class of any supported library.

Called by ``annotations.py`` and ``roots.py``.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import sys
import typing
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.kube.models.errors import ModelError
from instar.kube.models.shapes import PRESERVE


class ModelField(NamedTuple):
    """A field of a model class, as its annotations declare it."""

    attribute: str
    name: str
    """The name in the object."""
    annotation: Any
    required: bool
    default: Any = None
    """A JSON value; ``None`` means no default."""
    carried: tuple[Any, ...] = ()
    """Metadata objects besides the annotation."""


def is_model(cls: Any) -> bool:
    return isinstance(cls, type) and (
        dataclasses.is_dataclass(cls)
        or hasattr(cls, "model_fields")
        or hasattr(cls, "__struct_fields__")
        or typing.is_typeddict(cls)
    )


def fields_of(cls: type[Any]) -> list[ModelField]:
    hints = _hints(cls)
    if typing.is_typeddict(cls):
        return list(_typeddict(cls, hints))
    if dataclasses.is_dataclass(cls):
        return list(_dataclass(cls, hints))
    if hasattr(cls, "model_fields"):
        return list(_pydantic(cls, hints))
    return list(_struct(cls, hints))


def class_keywords(cls: type[Any]) -> Object:
    """Return the schema keywords of the object as a whole."""
    config = getattr(cls, "model_config", None)
    if isinstance(config, Mapping):
        extra = config.get("json_schema_extra")
        allowed = {PRESERVE: True} if config.get("extra") == "allow" else {}
        return {**allowed, **(extra if isinstance(extra, Mapping) else {})}
    return dict(_class_or_module_attribute(cls, "__schema__"))


def crd_attribute(cls: type[Any]) -> Object:
    """Return ``__crd__``, the CRD fields that the class defines."""
    return dict(_class_or_module_attribute(cls, "__crd__"))


def _class_or_module_attribute(cls: type[Any], name: str) -> Mapping[str, Any]:
    """Return an attribute of the class, or of its module under the name of the class."""
    own = getattr(cls, name, None)
    if own is None:
        module = getattr(sys.modules.get(cls.__module__), name, None)
        own = module.get(cls.__name__) if isinstance(module, Mapping) else None
    if own is not None and not isinstance(own, Mapping):
        raise ModelError(f"{cls.__name__}: {name} is not a dict")
    return own or {}


def _hints(cls: type[Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        raise ModelError(f"{cls.__name__}: {type(error).__name__}: {error}") from None


def _typeddict(cls: Any, hints: Mapping[str, Any]) -> Iterator[ModelField]:
    for name, annotation in hints.items():
        required = name in cls.__required_keys__
        inner = annotation
        while typing.get_origin(inner) in _PRESENCE:
            required = _PRESENCE.get(typing.get_origin(inner), required)
            inner = typing.get_args(inner)[0]
        yield ModelField(name, name, inner, required)


_PRESENCE: dict[Any, bool] = {typing.Required: True, typing.NotRequired: False}


def _dataclass(cls: type[Any], hints: Mapping[str, Any]) -> Iterator[ModelField]:
    for each in dataclasses.fields(cls):
        default: Any = None
        required = each.default is dataclasses.MISSING
        if not required:
            default = each.default
        elif each.default_factory is not dataclasses.MISSING:
            required, default = False, each.default_factory()
        name = each.metadata.get("alias", each.name)
        yield ModelField(each.name, name, hints[each.name], required, json_value(default))


def _pydantic(cls: Any, hints: Mapping[str, Any]) -> Iterator[ModelField]:
    for attribute, info in cls.model_fields.items():
        name = info.serialization_alias or info.alias or attribute
        required = info.is_required()
        default = None
        if not required:
            takes = info.default_factory_takes_validated_data
            default = None if takes else info.get_default(call_default_factory=True)
        annotation = hints.get(attribute, info.annotation)
        yield ModelField(attribute, name, annotation, required, json_value(default), (info,))


def _struct(cls: Any, hints: Mapping[str, Any]) -> Iterator[ModelField]:
    library = sys.modules["msgspec"]
    for each in library.structs.fields(cls):
        default = None
        if each.default is not library.NODEFAULT:
            default = each.default
        elif each.default_factory is not library.NODEFAULT:
            default = each.default_factory()
        if default is library.UNSET:
            default = None
        required = each.required
        yield ModelField(
            each.name, each.encode_name, hints[each.name], required, json_value(default)
        )


def json_value(value: Any) -> Any:
    """Return a default as JSON."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(each) for each in value]
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if is_model(type(value)):
        return _model_value(value)
    raise ModelError(f"{type(value).__name__} is no default that JSON can say")


def _model_value(value: Any) -> Object:
    """Return only the values that were set; the others are the class's own defaults."""
    if hasattr(value, "model_dump"):
        dumped = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return dict(dumped)
    found = {
        each.name: json_value(getattr(value, each.attribute)) for each in fields_of(type(value))
    }
    return {name: each for name, each in found.items() if each is not None}
