"""Collects constants from a converter's code, to be tried as values.

``directed_inputs.py`` calls it. A converter that splits at "/" or compares with 1000 has that
constant in its code object, and a regular expression has texts that match it. The search follows
functions, closures, default arguments, module globals that the code names, and the rules of the
SDK. The search reads code and never runs it; a webhook behind a URL has no code to read.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import sys
import types
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.schema.validation.pattern_automata import sample_texts

_MOST_CONSTANTS = 200
_MOST_VISITS = 5000
_MAX_TEXT_LENGTH = 60
"""Longer string constants are ignored."""
_MOST_PATTERNS = 12
_MAX_PATTERN_LENGTH = 300
_SAMPLES = 4
"""Texts that are tried for each regular expression of the code."""
_PATTERN = re.compile(r"\\[dwsDWSb]|\[[^\]]+\]|[^\\][*+?]|\(\?|^\^|\$$")
_SDK = "instar.tools.sdk"
_COMMON_FIELDS = frozenset({"metadata", "apiVersion", "kind", "annotations", "labels", "name"})


@dataclass(frozen=True, slots=True)
class MinedValues:
    """Distinct values to try, constants of the code first."""

    texts: tuple[str, ...] = ()
    numbers: tuple[int | float, ...] = ()

    def merged(self, other: MinedValues) -> MinedValues:
        return MinedValues(
            tuple(dict.fromkeys((*self.texts, *other.texts))),
            tuple(dict.fromkeys((*self.numbers, *other.numbers))),
        )


def mine_code(root: Any, field_names: Iterable[str] = ()) -> MinedValues:
    """Return the constants that a converter or function refers to, and values around them.

    ``field_names`` are no values: code is full of them.
    """
    found = _Constants()
    found.visit(root)
    ignored = _COMMON_FIELDS.union(field_names)
    texts = [
        text for text in found.texts if 0 < len(text) <= _MAX_TEXT_LENGTH and text not in ignored
    ]
    patterns = [*found.patterns, *filter(_looks_like_pattern, found.texts)][:_MOST_PATTERNS]
    return MinedValues(
        tuple(dict.fromkeys((*_texts_matching(patterns), *_texts_around(texts)))),
        tuple(dict.fromkeys(_numbers_around(found.numbers))),
    )


def mine_objects(objects: Iterable[Object]) -> MinedValues:
    """Return the scalar values of real objects, without their metadata."""
    found = _Constants()
    for obj in objects:
        found.visit({name: value for name, value in obj.items() if name != "metadata"})
    return MinedValues(tuple(found.texts), tuple(found.numbers))


def _looks_like_pattern(text: str) -> bool:
    return len(text) <= _MAX_PATTERN_LENGTH and bool(_PATTERN.search(text))


def _texts_matching(patterns: Iterable[str]) -> Iterable[str]:
    """Return texts that match each pattern, and the first one with more before and after it.

    Code that expects a whole text often uses a pattern that also matches inside of one.
    """
    for pattern in patterns:
        samples = sorted(sample_texts(pattern), key=len)[: _SAMPLES * 3]
        yield from samples[: _SAMPLES * 3 : 3]
        for sample in samples[:1]:
            yield from (f"{sample}-a1", f"{sample}.5", f"a{sample}")


def _texts_around(texts: list[str]) -> Iterable[str]:
    """Return a separator between, before and after other text; a word unchanged and in
    other cases.
    """
    for text in texts:
        if not any(character.isalnum() for character in text):
            yield from (f"a{text}b", f"a{text}b{text}c", f"{text}a", f"a{text}", text)
    for text in texts:
        if any(character.isalnum() for character in text):
            yield from (text, f"a{text}b", f"{text}1", f"1{text}", text.upper(), text.capitalize())


def _numbers_around(numbers: Iterable[int | float]) -> Iterable[int | float]:
    for number in numbers:
        if isinstance(number, float):
            yield from (number, number * 1.5, number / 3)
        else:
            yield from (number, number + 1, number - 1, number * 2 + 1, -number)


class _Constants:
    """Visits functions and values; every object is visited once."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        self.numbers: dict[int | float, None] = {}
        self.patterns: list[str] = []
        self._seen: set[int] = set()
        self._kept: list[Any] = []

    def visit(self, root: Any) -> None:
        waiting = [root]
        while waiting and len(self._seen) < _MOST_VISITS:
            value = waiting.pop()
            if isinstance(value, str):
                _add(self.texts, value)
            elif isinstance(value, bool) or value is None:
                continue
            elif isinstance(value, int | float):
                _add(self.numbers, value)
            elif id(value) not in self._seen:
                self._seen.add(id(value))
                self._kept.append(value)  # so that no other object gets its id
                waiting += self._inside(value)

    def _inside(self, value: Any) -> list[Any]:
        if isinstance(value, types.CodeType):
            return [each for each in value.co_consts if each is not _docstring(value)]
        if isinstance(value, types.MethodType):
            return [value.__self__, value.__func__]
        if isinstance(value, types.FunctionType):
            return _inside_function(value)
        if isinstance(value, Mapping):
            return [*value.keys(), *value.values()]
        if isinstance(value, list | tuple | set | frozenset):
            return list(value)
        if isinstance(value, re.Pattern):
            self.patterns.append(str(value.pattern))
            return re.findall(r"[^\w\s\\^$.|?*+()\[\]{}]+|\w{2,}", str(value.pattern))
        if isinstance(value, enum.EnumMeta):
            return [member.value for member in value]  # type: ignore[var-annotated]
        if isinstance(value, type):
            return _inside_class(value)
        return _inside_instance(value)


def _add(found: dict[Any, None], value: Any) -> None:
    if len(found) < _MOST_CONSTANTS:
        found.setdefault(value)


def _docstring(code: types.CodeType) -> Any:
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) and len(first) > _MAX_TEXT_LENGTH else None


def _inside_function(function: types.FunctionType) -> list[Any]:
    module = str(function.__module__ or "")
    closure = [_content(cell) for cell in function.__closure__ or ()]
    if not _is_written_by_author(module):
        return closure
    inside: list[Any] = [function.__code__, *closure, *(function.__defaults__ or ())]
    inside += (function.__kwdefaults__ or {}).values()
    for name in _names(function.__code__):
        found = function.__globals__.get(name)
        owner = str(getattr(found, "__module__", module) or module)
        if not isinstance(found, types.ModuleType) and _is_written_by_author(owner):
            inside.append(found)
    return inside


def _names(code: types.CodeType) -> set[str]:
    """Return the global names of a function, its comprehensions and inner functions."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _is_written_by_author(module: str) -> bool:
    """Return whether a module is neither of the standard library nor of instar."""
    top = module.partition(".")[0]
    return top != "instar" and top not in sys.stdlib_module_names


def _inside_class(value: type) -> list[Any]:
    if not _is_written_by_author(value.__module__):
        return []
    return [each for name, each in vars(value).items() if not name.startswith("__")]


def _inside_instance(value: Any) -> list[Any]:
    if isinstance(value, Fraction):
        return [value.numerator, value.denominator]
    module = type(value).__module__
    if not module.startswith(_SDK) and not _is_written_by_author(module):
        return []
    if dataclasses.is_dataclass(value):
        return [getattr(value, each.name, None) for each in dataclasses.fields(value)]
    return list(getattr(value, "__dict__", {}).values())


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
