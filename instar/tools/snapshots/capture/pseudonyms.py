"""Pseudonyms of the same shape as the values they replace: a letter for a letter, a digit for a
digit.

``redacting.py`` calls it. The mapping is keyed and one to one: two values never get the same
pseudonym as long as their shapes are short enough to be counted, and a value gets the same
pseudonym everywhere. So references still match and names stay valid. Without the key the original
cannot be recovered. Pure.
"""

from __future__ import annotations

import hmac
from math import prod
from typing import Any

_LOWER, _UPPER, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_ALPHABETS = {character: word for word in (_LOWER, _UPPER, _DIGITS) for character in word}
_MAX_COUNTED_LENGTH = 64
"""Most letters and digits of a text that is replaced one to one; a longer one is hashed, where
a collision is practically impossible.
"""
_ROUNDS = 8
"""Rounds of the keyed permutation that maps a value to its pseudonym."""


class Pseudonyms:
    """Replaces values by pseudonyms of the same shape; equal values get equal ones."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, value: Any) -> Any:
        """Return the value with every string and number replaced; true, false and null are kept."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return self._whole(value)
        if isinstance(value, float):
            return float(self._text(f"{value:.6f}"))
        if isinstance(value, dict):
            return {name: self.of(item) for name, item in value.items()}
        return [self.of(item) for item in value]

    def _whole(self, value: int) -> int:
        """Return an integer with the same sign and number of digits."""
        digits = self._text(str(abs(value)))
        while digits[0] == "0" and (value < 0 or len(digits) > 1):
            digits = self._text(digits)
        return -int(digits) if value < 0 else int(digits)

    def _text(self, value: str) -> str:
        letters = [_ALPHABETS.get(character) for character in value]
        alphabets = [word for word in letters if word is not None]
        if not alphabets:
            return value
        if len(alphabets) > _MAX_COUNTED_LENGTH:
            chance = self._stream(b"long" + value.encode(errors="surrogatepass"), len(value))
            numbers = [
                chance[at] % len(word) for at, word in enumerate(letters) if word is not None
            ]
        else:
            numbers = self._permuted(value, letters, alphabets)
        fresh = iter(numbers)
        return "".join(
            character if word is None else word[next(fresh)]
            for character, word in zip(value, letters, strict=True)
        )

    def _permuted(self, value: str, letters: list[str | None], alphabets: list[str]) -> list[int]:
        """Number all texts of this shape, permute the number with the key, and return letter
        indexes.
        """
        shape = "".join(
            character if word is None else word[0]
            for character, word in zip(value, letters, strict=True)
        ).encode(errors="surrogatepass")
        number = 0
        for character, word in zip(value, letters, strict=True):
            if word is not None:
                number = number * len(word) + word.index(character)
        count = prod(len(word) for word in alphabets)
        number = self._walk(number, count, shape)
        found = []
        for word in reversed(alphabets):
            number, rest = divmod(number, len(word))
            found.append(rest)
        return found[::-1]

    def _walk(self, number: int, count: int, shape: bytes) -> int:
        """Permute within a power of four until the result is below ``count`` (cycle walking)."""
        half = ((count - 1).bit_length() + 1) // 2
        while True:
            left, right = number >> half, number & ((1 << half) - 1)
            for turn in range(_ROUNDS):
                size = (half + 7) // 8
                message = bytes([turn]) + right.to_bytes(size, "big") + shape
                mixed = int.from_bytes(self._stream(message, size), "big") & ((1 << half) - 1)
                left, right = right, left ^ mixed
            number = left << half | right
            if number < count:
                return number

    def _stream(self, message: bytes, length: int) -> bytes:
        found = hmac.digest(self._key, message, "sha256")
        while len(found) < length:
            found += hmac.digest(self._key, found[-32:] + message, "sha256")
        return found[:length]
