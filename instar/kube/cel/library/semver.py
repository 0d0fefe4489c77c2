"""CEL functions for semantic versions 2.0, optionally normalised (``v1.2`` becomes ``1.2.0``).

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import go_quote
from instar.kube.cel.functions import (
    Overload,
    estimated_once,
    first_argument_cost,
    function,
    method,
)
from instar.kube.cel.types import BOOL, INT, STRING, Type, message
from instar.kube.cel.values import UINT_MAX, CelError, Opaque

SEMVER = message("kubernetes.Semver")
_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]*", re.ASCII)
_MOST_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Semver(Opaque):
    cel_type = "kubernetes.Semver"
    numbers: tuple[int, int, int]
    pre: tuple[str, ...] = ()
    build: tuple[str, ...] = field(default=(), compare=False)

    def rank(self) -> tuple[object, ...]:
        """Return a sort key in the order of the specification; a release ranks above its
        prereleases."""
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.pre)
        return (self.numbers, not self.pre, parts)

    def __str__(self) -> str:
        pre = "-" + ".".join(self.pre) if self.pre else ""
        build = "+" + ".".join(self.build) if self.build else ""
        return ".".join(map(str, self.numbers)) + pre + build


def parse_semver(text: str, normalize: bool = False) -> Semver:
    if normalize:
        text = _normalized(text)
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "Major"), _number(parts[1], "Minor")
    rest, plus, meta = parts[2].partition("+")
    patch, dash, candidate = rest.partition("-")
    numbers = (major, minor, _number(patch, "Patch"))
    pre = tuple(map(_prerelease, candidate.split("."))) if dash else ()
    return Semver(numbers, pre, tuple(map(_build, meta.split("."))) if plus else ())


def _number(text: str, which: str) -> int:
    if text and not (text.isascii() and text.isdigit()):
        raise CelError(f"Invalid character(s) found in {which.lower()} number {go_quote(text)}")
    if len(text) > 1 and text.startswith("0"):
        raise CelError(f"{which} number must not contain leading zeroes {go_quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    problem = f"strconv.ParseUint: parsing {go_quote(text)}"
    if not text:
        raise CelError(f"{problem}: invalid syntax")
    if len(text) > _MOST_DIGITS or int(text) > UINT_MAX:
        raise CelError(f"{problem}: value out of range")
    return int(text)


def _prerelease(text: str) -> str:
    if not text:
        raise CelError("Prerelease is empty")
    if text.isascii() and text.isdigit():
        if len(text) > 1 and text.startswith("0"):
            raise CelError(
                f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}"
            )
        _unsigned(text)
    elif _ALPHANUMERIC.fullmatch(text) is None:
        raise CelError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise CelError("Build meta data is empty")
    if _ALPHANUMERIC.fullmatch(text) is None:
        raise CelError(f"Invalid character(s) found in build meta data {go_quote(text)}")
    return text


def _normalized(text: str) -> str:
    """Drop ``v`` and leading zeroes; add missing numbers."""
    parts = [_without_zeroes(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_zeroes(part: str) -> str:
    if len(part) < 2:
        return part
    bare = part.lstrip("0")
    return bare if bare[:1] in tuple("123456789") else "0" + bare


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse_semver(text, normalize)
    except CelError:
        return False
    return True


def _compare(left: Semver, right: Semver) -> int:
    ours, theirs = left.rank(), right.rank()
    return (ours > theirs) - (ours < theirs)


def _parsing_function(name: str, result: Type, impl: Callable[..., Any], *more: Type) -> Overload:
    return function(
        name,
        (STRING, *more),
        result,
        impl,
        work=first_argument_cost,
        estimate=estimated_once,
        by_name=True,
    )


def overloads() -> list[Overload]:
    pair = (SEMVER, SEMVER)
    return [
        _parsing_function("semver", SEMVER, parse_semver),
        _parsing_function("semver", SEMVER, parse_semver, BOOL),
        _parsing_function("isSemver", BOOL, _is_semver),
        _parsing_function("isSemver", BOOL, _is_semver, BOOL),
        method("major", (SEMVER,), INT, lambda v: v.numbers[0]),
        method("minor", (SEMVER,), INT, lambda v: v.numbers[1]),
        method("patch", (SEMVER,), INT, lambda v: v.numbers[2]),
        method("isLessThan", pair, BOOL, lambda a, b: _compare(a, b) < 0),
        method("isGreaterThan", pair, BOOL, lambda a, b: _compare(a, b) > 0),
        method("compareTo", pair, INT, _compare),
    ]


def type_names() -> list[tuple[str, Type]]:
    return [(SEMVER.name, SEMVER)]
