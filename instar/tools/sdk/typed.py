"""Converters on models: dataclasses, typed dicts, pydantic or msgspec, whichever is installed.

Called by ``converter.py`` and ``admission.py`` for functions whose annotations are models. None of
the libraries is imported unless a model of that library is used. A model describes the object
without ``apiVersion`` and ``kind``; it sees ``metadata`` only if it has a field of that name. A
field that a model leaves unset stays absent, because server-side apply also converts partial
objects, and a converter must not add fields to them.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from instar.tools.sdk.errors import ConversionError, ConverterDefinitionError

Read = Callable[[dict[str, Any]], Any]
Write = Callable[[Any], dict[str, Any]]
_COMMON_FIELDS = ("apiVersion", "kind", "metadata")


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """Reads and writes objects of one version's model class."""

    read: Read
    write: Write
    wants_metadata: bool

    def load(self, obj: Mapping[str, Any]) -> Any:
        hidden = _COMMON_FIELDS[:2] if self.wants_metadata else _COMMON_FIELDS
        return self.read({name: value for name, value in obj.items() if name not in hidden})


def model_of(cls: type[Any]) -> Model:
    names = _field_names(cls)
    read: Read = dict  # a typed dict is what it is read from
    write: Write = dict
    if typing.is_typeddict(cls):
        pass
    elif dataclasses.is_dataclass(cls):
        read, write = _dataclass(cls)
    elif _is_subclass(cls, "pydantic", "BaseModel"):
        read, write = _pydantic(cls)
    elif _is_subclass(cls, "msgspec", "Struct"):
        read, write = _msgspec(cls)
    else:
        raise ConverterDefinitionError(
            f"{cls.__name__} is neither a dataclass nor a typed dict, "
            "a pydantic model or a msgspec struct"
        )
    return Model(read, write, "metadata" in names)


def _field_names(cls: type[Any]) -> set[str]:
    if dataclasses.is_dataclass(cls):
        return {field.name for field in dataclasses.fields(cls)}
    if typing.is_typeddict(cls):
        return set(cls.__annotations__)
    fields: Iterable[str] = (
        getattr(cls, "model_fields", None) or getattr(cls, "__struct_fields__", None) or ()
    )
    return set(fields)


def _is_subclass(cls: type[Any], module: str, name: str) -> bool:
    base = getattr(sys.modules.get(module), name, None)
    return base is not None and issubclass(cls, base)


def _pydantic(cls: type[Any]) -> tuple[Read, Write]:
    def read(raw: dict[str, Any]) -> Any:
        try:
            return cls.model_validate(raw)
        except ValueError as error:
            raise ConversionError(_summary(cls, error)) from None

    return read, lambda value: dict(
        value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    )


def _summary(cls: type[Any], error: ValueError) -> str:
    """Return the paths and types of errors, without the values that pydantic would print."""
    listed = getattr(error, "errors", None)
    if listed is None:
        return f"does not fit {cls.__name__}"
    places = [
        f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
        for item in listed(include_input=False, include_url=False, include_context=False)
    ]
    return f"does not fit {cls.__name__}: {'; '.join(places)}"


def _msgspec(cls: type[Any]) -> tuple[Read, Write]:
    # Imported here: a class of this library exists only where the library is installed.
    import msgspec

    def read(raw: dict[str, Any]) -> Any:
        try:
            return msgspec.convert(raw, cls)
        except msgspec.ValidationError as error:
            raise ConversionError(f"does not fit {cls.__name__}: {error}") from None

    return read, lambda value: _without_none(msgspec.to_builtins(value))


def _dataclass(cls: type[Any]) -> tuple[Read, Write]:
    def read(raw: dict[str, Any]) -> Any:
        return _build(cls, raw, cls.__name__)

    return read, _written


def _build(wanted: Any, raw: Any, where: str) -> Any:
    """Return a value of type ``wanted`` from JSON, for the types that dataclasses usually have."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        if raw is None:
            return None
        chosen = [each for each in arguments if each is not type(None)]
        return _build(chosen[0], raw, where) if len(chosen) == 1 else raw
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        return _build_dataclass(wanted, raw, where)
    if origin is list and isinstance(raw, list):
        return [_build(arguments[0], item, where) for item in raw]
    if origin is dict and isinstance(raw, dict):
        return {name: _build(arguments[1], item, where) for name, item in raw.items()}
    return raw


def _build_dataclass(cls: Any, raw: Any, where: str) -> Any:
    if not isinstance(raw, dict):
        raise ConversionError(f"{where} is not an object")
    known = _members(cls)
    unknown = sorted(set(raw) - set(known))
    if unknown:
        raise ConversionError(f"{where} has no field {', '.join(unknown)}")
    values = {
        known[name].attribute: _build(known[name].wanted, value, f"{where}.{name}")
        for name, value in raw.items()
    }
    try:
        return cls(**values)
    except TypeError as error:
        raise ConversionError(f"{where}: {error}") from None


class _Member(typing.NamedTuple):
    attribute: str
    wanted: Any


@lru_cache(maxsize=4096)
def _members(cls: Any) -> dict[str, _Member]:
    """Return members by their name in the object; ``metadata={"alias": …}`` of a field sets it."""
    hints = typing.get_type_hints(cls)
    return {
        field.metadata.get("alias", field.name): _Member(field.name, hints[field.name])
        for field in dataclasses.fields(cls)
    }


def _written(value: Any) -> Any:
    """Return the JSON of a dataclass, without unset fields."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = {
            name: getattr(value, each.attribute)
            for name, each in _members(typing.cast(Any, type(value))).items()
        }
        return {name: _written(each) for name, each in held.items() if each is not None}
    if isinstance(value, dict):
        return {name: _written(each) for name, each in value.items()}
    return [_written(each) for each in value] if isinstance(value, list) else value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value
