"""Validators of formats with a check digit: ISBNs and credit card numbers.

Called by ``named.py``.
"""

from __future__ import annotations

import re

_ISBN10 = re.compile(r"\d{9}[\dX]", re.ASCII)
_ISBN13 = re.compile(r"\d{13}", re.ASCII)
_ISSUERS = re.compile(
    r"4\d{12}(\d{3})?"  # Visa
    r"|5[1-5]\d{14}|(222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720)\d{12}"  # Mastercard
    r"|6(011|5\d\d)\d{12}"  # Discover
    r"|3[47]\d{13}"  # American Express
    r"|3(0[0-5]|[68]\d)\d{11}"  # Diners Club
    r"|(2131|1800|35\d{3})\d{11}"  # JCB
    r"|6[27]\d{14}",  # UnionPay
    re.ASCII,
)
_NOT_DIGITS = re.compile(r"\D+", re.ASCII)


def is_isbn(text: str) -> bool:
    return is_isbn10(text) or is_isbn13(text)


def is_isbn10(text: str) -> bool:
    digits = _without_separators(text)
    if _ISBN10.fullmatch(digits) is None:
        return False
    values = [10 if char == "X" else int(char) for char in digits]
    return sum((10 - place) * value for place, value in enumerate(values)) % 11 == 0


def is_isbn13(text: str) -> bool:
    digits = _without_separators(text)
    if _ISBN13.fullmatch(digits) is None:
        return False
    return sum(int(char) * (3 if place % 2 else 1) for place, char in enumerate(digits)) % 10 == 0


def is_credit_card(text: str) -> bool:
    digits = _NOT_DIGITS.sub("", text)
    return _ISSUERS.fullmatch(digits) is not None and _luhn(digits)


def _luhn(digits: str) -> bool:
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _without_separators(text: str) -> str:
    return text.replace(" ", "").replace("-", "")
