"""Parses and formats cookies; a value too long for one cookie is split over several.

Used by ``authentication.py`` and ``oidc.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_PIECE = 3600
"""Characters per cookie; browsers keep 4096 including name and attributes."""
MOST_PIECES = 6
"""Maximum number of cookies that one value is split over."""


def read_cookies(headers: Iterable[str]) -> dict[str, str]:
    """Return cookies by name. Of several cookies with one name the first is used, because browsers
    send the most specific cookie first."""
    found: dict[str, str] = {}
    for header in headers:
        for pair in header.split(";"):
            name, equals, value = pair.strip().partition("=")
            if equals:
                found.setdefault(name, value)
    return found


def join_cookie(cookies: dict[str, str], name: str) -> str:
    """Return the joined value; empty if absent."""
    pieces = [cookies.get(_numbered(name, number), "") for number in range(MOST_PIECES)]
    return "".join(pieces[: pieces.index("")] if "" in pieces else pieces)


def fits(value: str) -> bool:
    """Return whether a value fits into the allowed number of cookies."""
    return len(value) <= _PIECE * MOST_PIECES


def set_cookies(name: str, value: str, seconds: int, *, secure: bool, same_site: str) -> list[str]:
    """Return ``Set-Cookie`` lines for the value, and lines that delete unused parts of an older
    one.
    """
    pieces = [value[at : at + _PIECE] for at in range(0, len(value), _PIECE)]
    attributes = f"Path=/; HttpOnly; SameSite={same_site}" + ("; Secure" if secure else "")
    return list(_lines(name, pieces, seconds, attributes))


def _lines(name: str, pieces: list[str], seconds: int, attributes: str) -> Iterator[str]:
    for number in range(MOST_PIECES):
        there = number < len(pieces)
        value, age = (pieces[number], seconds) if there else ("", 0)
        yield f"{_numbered(name, number)}={value}; Max-Age={age}; {attributes}"


def _numbered(name: str, number: int) -> str:
    return name if number == 0 else f"{name}.{number}"
