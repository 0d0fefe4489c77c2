"""Kubernetes quantities: ``1.5Gi``, ``100m``, ``2e3``; exact, down to nano."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from instar.cel.functions import Overload, function, method, nominal, per_byte
from instar.cel.types import BOOL, DOUBLE, INT, STRING, Type, opaque
from instar.cel.values import INT_MAX, INT_MIN, CelError, Opaque

QUANTITY = opaque("kubernetes.Quantity")
_FORM = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII
)  # fmt: skip
_SUFFIXES = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3),
    **{name: Fraction(1000 ** (power + 1)) for power, name in enumerate("kMGTPE")},
    **{f"{name}i": Fraction(1024 ** (power + 1)) for power, name in enumerate("KMGTPE")},
}  # fmt: skip
_NANO = 10**9
_MAX_EXPONENT = 10_000


@dataclass(frozen=True, slots=True)
class Quantity(Opaque):
    cel_type = "kubernetes.Quantity"
    amount: Fraction


def parse_quantity(text: str) -> Quantity:
    match = _FORM.fullmatch(text)
    if match is None:
        if not text:
            raise CelError("quantity parse error: quantities must not be empty")
        raise CelError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, number, suffix = match.groups(default="")
    amount = Fraction(number.rstrip(".") or "0") * _multiplier(suffix)
    # Finer than nano is rounded away from zero, as upstream does.
    nanos = -((-amount.numerator * _NANO) // amount.denominator)
    amount = Fraction(nanos, _NANO)
    return Quantity(-amount if sign == "-" else amount)


def _multiplier(suffix: str) -> Fraction:
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    exponent = int(suffix[1:])
    if abs(exponent) > _MAX_EXPONENT:
        raise CelError("unable to parse quantity's suffix")
    return Fraction(10) ** exponent


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except CelError:
        return False
    return True


def _is_integer(quantity: Quantity) -> bool:
    amount = quantity.amount
    return amount.denominator == 1 and INT_MIN <= amount.numerator <= INT_MAX


def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise CelError("cannot convert value to integer")
    return quantity.amount.numerator


def _sign(quantity: Quantity) -> int:
    return (quantity.amount > 0) - (quantity.amount < 0)


def _compare(left: Quantity, right: Quantity) -> int:
    return (left.amount > right.amount) - (left.amount < right.amount)


def overloads() -> list[Overload]:
    pair = (QUANTITY, QUANTITY)
    return [
        function("quantity", (STRING,), QUANTITY, parse_quantity, work=per_byte, estimate=nominal),
        function("isQuantity", (STRING,), BOOL, _is_quantity, work=per_byte, estimate=nominal),
        function("sign", (QUANTITY,), INT, _sign),
        method("isInteger", (QUANTITY,), BOOL, _is_integer),
        method("asInteger", (QUANTITY,), INT, _as_integer),
        method("asApproximateFloat", (QUANTITY,), DOUBLE, lambda q: float(q.amount)),
        method("add", pair, QUANTITY, lambda a, b: Quantity(a.amount + b.amount)),
        method("add", (QUANTITY, INT), QUANTITY, lambda a, b: Quantity(a.amount + b)),
        method("sub", pair, QUANTITY, lambda a, b: Quantity(a.amount - b.amount)),
        method("sub", (QUANTITY, INT), QUANTITY, lambda a, b: Quantity(a.amount - b)),
        method("isLessThan", pair, BOOL, lambda a, b: a.amount < b.amount),
        method("isGreaterThan", pair, BOOL, lambda a, b: a.amount > b.amount),
        method("compareTo", pair, INT, _compare),
    ]


def type_names() -> list[tuple[str, Type]]:
    return [(QUANTITY.name, QUANTITY)]
