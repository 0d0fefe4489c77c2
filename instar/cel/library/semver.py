"""Semantic versions 2.0, optionally normalised (``v1.2`` becomes ``1.2.0``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from instar.cel.functions import Overload, function, method, nominal, tenth
from instar.cel.types import BOOL, INT, STRING, Type, opaque
from instar.cel.values import CelError, Opaque

SEMVER = opaque("kubernetes.Semver")
_FORM = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?"
)
_CORE = re.compile(r"[0-9.]*")


@dataclass(frozen=True, slots=True)
class Semver(Opaque):
    cel_type = "kubernetes.Semver"
    numbers: tuple[int, int, int]
    pre: tuple[str, ...] = ()

    def rank(self) -> tuple[object, ...]:
        """Sorts as the specification orders versions; a release outranks its candidates."""
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.pre)
        return (self.numbers, not self.pre, parts)


def parse_semver(text: str, normalize: bool = False) -> Semver:
    match = _FORM.fullmatch(_normalized(text) if normalize else text)
    if match is None:
        raise CelError(
            f"semver parse error during conversion from string: {text!r} is not a version"
        )
    pre = match.group(4)
    numbers = (int(match.group(1)), int(match.group(2)), int(match.group(3)))
    return Semver(numbers, tuple(pre.split(".")) if pre else ())


def _normalized(text: str) -> str:
    text = text.removeprefix("v")
    core = _CORE.match(text)
    head = core.group() if core is not None else ""
    parts = [part.lstrip("0") or ("0" if part else "") for part in head.split(".")]
    if head and len(parts) < 3:
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts) + text[len(head) :]


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse_semver(text, normalize)
    except CelError:
        return False
    return True


def _compare(left: Semver, right: Semver) -> int:
    ours, theirs = left.rank(), right.rank()
    return (ours > theirs) - (ours < theirs)


def _read(text: int, _normalize: int = 0) -> float:
    return tenth(text)


def overloads() -> list[Overload]:
    pair = (SEMVER, SEMVER)
    return [
        function("semver", (STRING,), SEMVER, parse_semver, work=_read, estimate=nominal),
        function("semver", (STRING, BOOL), SEMVER, parse_semver, work=_read, estimate=nominal),
        function("isSemver", (STRING,), BOOL, _is_semver, work=_read, estimate=nominal),
        function("isSemver", (STRING, BOOL), BOOL, _is_semver, work=_read, estimate=nominal),
        method("major", (SEMVER,), INT, lambda v: v.numbers[0]),
        method("minor", (SEMVER,), INT, lambda v: v.numbers[1]),
        method("patch", (SEMVER,), INT, lambda v: v.numbers[2]),
        method("isLessThan", pair, BOOL, lambda a, b: _compare(a, b) < 0),
        method("isGreaterThan", pair, BOOL, lambda a, b: _compare(a, b) > 0),
        method("compareTo", pair, INT, _compare),
    ]


def type_names() -> list[tuple[str, Type]]:
    return [(SEMVER.name, SEMVER)]
