"""Kubernetes quantities (``1.5Gi``, ``100m``, ``2e3``): parsing, canonical form, rounding and sums.

Called by the built-in kinds' decoders (``typed``, ``protobuf``), their rules, and the LimitRanger
plugin. A quantity is digits and a power of ten, so that even a huge exponent costs no more than the
length of its text.
"""

from __future__ import annotations

import re
from functools import lru_cache

_FORM = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?",
    re.ASCII,
)
WRONG_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_DECIMAL = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18
}  # fmt: skip
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO = -9
_MAX = 2**63 - 1
_MAX_TEXT = 1024


class QuantityError(ValueError):
    """The text is not a quantity; ``str()`` is upstream's message."""


def canonical_quantity(value: str | int | float) -> str:
    """Return the stored form: the largest suffix that leaves a whole number.

    A number is read by its JSON text. Fractions below nano are rounded away from zero. Raises
    ``QuantityError``.
    """
    return _canonical(value if isinstance(value, str) else repr(value))


@lru_cache(maxsize=2048)
def _canonical(text: str) -> str:
    match = _FORM.fullmatch(text.strip())
    if match is None or len(text) > _MAX_TEXT:
        raise QuantityError(WRONG_FORM)
    sign, number, suffix = match.groups(default="")
    whole, _, fraction = number.partition(".")
    digits = int(whole + fraction)
    if not digits:
        return "0"
    minus = "-" if sign == "-" else ""
    if suffix.endswith("i"):
        return minus + _binary(digits, len(fraction), _BINARY.index(suffix))
    exponential = suffix not in _DECIMAL
    power = int(suffix[1:]) if exponential else _DECIMAL[suffix]
    return minus + _decimal(*_to_nano(digits, power - len(fraction)), exponential=exponential)


def _to_nano(digits: int, power: int) -> tuple[int, int]:
    """Round the amount to at most nine decimals."""
    surplus = _NANO - power
    if surplus <= 0:
        return digits, power
    if surplus > len(str(digits)):
        return 1, _NANO
    return -(-digits // 10**surplus), _NANO


def _decimal(digits: int, power: int, *, exponential: bool) -> str:
    text = str(digits).rstrip("0")
    power += len(str(digits)) - len(text)
    text += "0" * (power % 3)
    power -= power % 3
    if exponential or power not in _DECIMAL_SUFFIX:
        return f"{text}e{power}" if power else text
    return text + _DECIMAL_SUFFIX[power]


def _binary(digits: int, decimals: int, thousands: int) -> str:
    """Format a binary quantity; below 1024, or with decimals left, it is written as a decimal
    one."""
    amount = digits * 1024**thousands
    scale: int = 10**decimals
    if amount > _MAX * scale:
        amount, scale, decimals = _MAX, 1, 0
    if amount < 1024 * scale or amount % scale:
        return _decimal(*_to_nano(amount, -decimals), exponential=False)
    amount //= scale
    step = 0
    while amount % 1024 == 0 and step < len(_BINARY) - 1:
        amount, step = amount // 1024, step + 1
    return f"{amount}{_BINARY[step]}"


def split_quantity(text: str) -> tuple[int, int, int]:
    """Return (digits, power of ten, power of 1024) of a quantity. Raises ``QuantityError``."""
    match = _FORM.fullmatch(text.strip())
    if match is None or len(text) > _MAX_TEXT:
        raise QuantityError(WRONG_FORM)
    sign, number, suffix = match.groups(default="")
    whole, _, fraction = number.partition(".")
    digits = int(whole + fraction) * (-1 if sign == "-" else 1)
    if suffix.endswith("i"):
        return digits, -len(fraction), _BINARY.index(suffix)
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return digits, power - len(fraction), 0


def round_up_to_milli(text: str) -> str:
    """Round a canonical decimal quantity in nanos or micros up to millis."""
    digits, power, _ = split_quantity(text)
    return canonical_quantity(f"{-(-digits // 10 ** (-3 - power))}m")


def sum_quantities(texts: list[str]) -> str:
    """Return the sum, in the format (binary, decimal) of the first quantity."""
    if len(texts) == 1:
        return canonical_quantity(texts[0])
    parts = [split_quantity(text) for text in texts]
    least = min(ten for _, ten, _ in parts)
    total: int = sum(digits * 10 ** (ten - least) * 1024**two for digits, ten, two in parts)
    if parts[0][2] and least == 0 and total % 1024 == 0:
        return canonical_quantity(f"{total // 1024}Ki")
    return canonical_quantity(f"{total * 10 ** max(0, least + 9) // 10 ** max(0, -9 - least)}n")
