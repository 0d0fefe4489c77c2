"""CEL functions for Kubernetes quantities (``1.5Gi``, ``100m``, ``2e3``), exact to nano.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.kube.cel.functions import (
    Overload,
    estimated_once,
    first_argument_cost,
    function,
    method,
)
from instar.kube.cel.types import BOOL, DOUBLE, INT, STRING, Type, message
from instar.kube.cel.values import INT_MAX, INT_MIN, CelError, NoSuchOverload, Opaque

QUANTITY = message("kubernetes.Quantity")
_FORM = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?[0-9]*+)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]++)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = -9
_FAST_DIGITS, _FAST_BITS = 18, 15
_MOST = 4000
"""Maximum digits and exponent; more are cut off, because huge numbers take long to compute."""


class Small(NamedTuple):
    """``value * 10 ** scale`` in one machine word, which upstream can convert to an integer."""

    value: int
    scale: int

    def amount(self) -> Fraction:
        return Fraction(self.value) * Fraction(10) ** self.scale


@dataclass(frozen=True, slots=True)
class Quantity(Opaque):
    cel_type = "kubernetes.Quantity"
    amount: Fraction
    small: Small | None = field(default=None, compare=False)
    computed: bool = field(default=False, compare=False)

    def cel_equals(self, other: Any) -> bool:
        """Compare; if the right side is a computed sum, upstream finds no overload."""
        if type(other) is not Quantity or other.computed:
            raise NoSuchOverload
        return self.amount == other.amount


def parse_quantity(text: str) -> Quantity:
    match = _FORM.fullmatch(text)
    if match is None or not text:
        raise CelError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, whole, decimals, suffix = match.groups(default="")
    scale, bits = _scale(suffix)
    if not whole and not decimals:
        raise CelError("unable to parse numeric part of quantity")
    whole = whole.lstrip("0")
    digits = whole + decimals
    number = int(digits[:_MOST] or "0") * (-1 if sign == "-" else 1)
    small = _small(number, whole, decimals, scale, bits)
    if small is not None:
        return Quantity(small.amount(), small)
    power = scale - len(decimals) + max(len(digits) - _MOST, 0)
    exact = Fraction(number) * Fraction(10) ** max(min(power, _MOST), -_MOST)
    return Quantity(_rounded(exact * 2**bits, capped=bits > 0))


def _scale(suffix: str) -> tuple[int, int]:
    """Return the powers of ten and of two of a suffix."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], 0
    if suffix in _BINARY:
        return 0, _BINARY[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise CelError("unable to parse quantity's suffix")
    digits = match.group(1)
    bare = digits.lstrip("+-").lstrip("0") or "0"
    power = min(int(bare[:6]) if len(bare) < 7 else _MOST, _MOST)
    return (-power if digits.startswith("-") else power), 0


def _small(number: int, whole: str, decimals: str, scale: int, bits: int) -> Small | None:
    if bits:
        spare = _FAST_BITS - len(whole) - int(bits * 3 / 10) - 1
        if decimals or spare < 0:
            return None
        value = number << bits
    else:
        if len(whole) + len(decimals) > _FAST_DIGITS or scale - len(decimals) < _NANO:
            return None
        value = number
    return Small(value, scale - len(decimals)) if abs(value) <= INT_MAX else None


def _rounded(amount: Fraction, *, capped: bool) -> Fraction:
    """Round fractions below nano away from zero; cap binary amounts at 2^63-1."""
    size = abs(amount)
    nanos = -((-size.numerator * 10**9) // size.denominator)
    size = Fraction(nanos, 10**9)
    if capped:
        size = min(size, Fraction(INT_MAX))
    return -size if amount < 0 else size


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except CelError:
        return False
    return True


def _is_integer(quantity: Quantity) -> bool:
    small = quantity.small
    if small is None or small.scale < 0:
        return False
    return INT_MIN <= quantity.amount.numerator <= INT_MAX


def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise CelError("cannot convert value to integer")
    return quantity.amount.numerator


def _as_float(quantity: Quantity) -> float:
    try:
        return float(quantity.amount)
    except OverflowError:
        return inf if quantity.amount > 0 else -inf


def _sum(left: Quantity, right: Quantity) -> Quantity:
    return Quantity(left.amount + right.amount, _small_sum(left.small, right.small), True)


def _small_sum(left: Small | None, right: Small | None) -> Small | None:
    if left is None or right is None:
        return None
    if not left.value or not right.value:
        return right if not left.value else left
    scale = min(left.scale, right.scale)
    value = left.value * 10 ** (left.scale - scale) + right.value * 10 ** (right.scale - scale)
    return Small(value, scale) if INT_MIN <= value <= INT_MAX else None


def _negated(quantity: Quantity) -> Quantity:
    small = quantity.small
    opposite = None if small is None else Small(-small.value, small.scale)
    return Quantity(-quantity.amount, opposite)


def _of(number: int) -> Quantity:
    return Quantity(Fraction(number), Small(number, 0))


def _sign(quantity: Quantity) -> int:
    return (quantity.amount > 0) - (quantity.amount < 0)


def _compare(left: Quantity, right: Quantity) -> int:
    return (left.amount > right.amount) - (left.amount < right.amount)


def _parsing_function(name: str, result: Type, impl: Callable[[str], Any]) -> Overload:
    return function(
        name,
        (STRING,),
        result,
        impl,
        work=first_argument_cost,
        estimate=estimated_once,
        by_name=True,
    )


def overloads() -> list[Overload]:
    pair = (QUANTITY, QUANTITY)
    return [
        _parsing_function("quantity", QUANTITY, parse_quantity),
        _parsing_function("isQuantity", BOOL, _is_quantity),
        function("sign", (QUANTITY,), INT, _sign),
        method("isInteger", (QUANTITY,), BOOL, _is_integer),
        method("asInteger", (QUANTITY,), INT, _as_integer),
        method("asApproximateFloat", (QUANTITY,), DOUBLE, _as_float),
        method("add", pair, QUANTITY, _sum),
        method("add", (QUANTITY, INT), QUANTITY, lambda a, b: _sum(a, _of(b))),
        method("sub", pair, QUANTITY, lambda a, b: _sum(a, _negated(b))),
        method("sub", (QUANTITY, INT), QUANTITY, lambda a, b: _sum(a, _of(-b))),
        method("isLessThan", pair, BOOL, lambda a, b: a.amount < b.amount),
        method("isGreaterThan", pair, BOOL, lambda a, b: a.amount > b.amount),
        method("compareTo", pair, INT, _compare),
    ]


def type_names() -> list[tuple[str, Type]]:
    return [(QUANTITY.name, QUANTITY)]
