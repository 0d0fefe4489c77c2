"""URL parser with the rules and error messages of Go's net/url.

Called by CEL's ``url()``, the CEL and schema formats.
"""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote, unquote_to_bytes

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import go_quote
from instar.kube.cel.go_netip import parse_address

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*+):")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE = re.compile(r"%(.{0,2})", re.DOTALL)
_HEX = frozenset("0123456789abcdefABCDEF")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*+")
_BAD_HOST = re.compile(r"""[\x00-\x20#/?@\\^`{|}\x7f]""")
_PATH_SAFE = "$&+,/:;=@-_.~!'()*[]%"


@dataclass(frozen=True, slots=True)
class GoUrl:
    scheme: str = ""
    host: str = ""
    path: str = ""
    """The path with its valid escapes kept."""
    query: str = ""
    user: str = ""
    fragment: str = ""
    opaque: str = ""
    """The part after the scheme of ``mailto:x``, which has no host and no path."""


def parse_request_uri(text: str) -> GoUrl:
    """Parse an absolute URL or path, without fragment. Raises ValueError."""
    if _CONTROL.search(text) is not None:
        raise ValueError("net/url: invalid control character in URL")
    if not text:
        raise ValueError("empty url")
    if text == "*":
        return GoUrl(path="*")
    return _parse(text, absolute=True)


def parse(text: str) -> GoUrl:
    """Parse like ``parse_request_uri``, but split off a fragment. Raises ValueError."""
    parse_request_uri(text)
    head, _, fragment = text.partition("#")
    _refuse_bad_escapes(fragment)
    return replace(_parse(head, absolute=False), fragment=fragment)


def _parse(text: str, *, absolute: bool) -> GoUrl:
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return GoUrl(scheme, query=query, opaque=rest)
        if absolute:
            raise ValueError("invalid URI for request")
    host = user = ""
    if rest.startswith("//") and (scheme or (not absolute and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(authority)
        rest = slash + path
    _refuse_bad_escapes(rest)
    return GoUrl(scheme, host, quote(rest, safe=_PATH_SAFE), query, user)


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    match = _SCHEME.match(text)
    return ("", text) if match is None else (match.group(1).lower(), text[match.end() :])


def _authority(text: str) -> tuple[str, str]:
    user, at, host = text.rpartition("@")
    host = _host(host)
    if at and _USER.fullmatch(user) is None:
        raise ValueError("net/url: invalid userinfo")
    _refuse_bad_escapes(user)
    return user, host


def _host(text: str) -> str:
    if text.startswith("["):
        inside, closing, port = text[1:].rpartition("]")
        if not closing:
            raise ValueError("missing ']' in host")
        _check_port(port)
        _check_literal(inside)
    else:
        _, colon, port = text.partition(":")
        _check_port(colon + port)
    if (bad := _BAD_HOST.search(text)) is not None:
        raise ValueError(f"invalid character {go_quote(bad.group())} in host name")
    for match in _ESCAPE.finditer(text):
        # An escaped ASCII character is an error, except the percent sign before a zone.
        digits = match.group(1)
        if not _is_escape(digits) or (digits[0] in "01234567" and digits != "25"):
            raise ValueError(f"invalid URL escape {go_quote(match.group())}")
    return unquote_to_bytes(text).decode(errors="replace")


def _check_port(port: str) -> None:
    digits = port[1:]
    if port and not (port[0] == ":" and (not digits or (digits.isascii() and digits.isdigit()))):
        raise ValueError(f"invalid port {go_quote(port)} after host")


def _check_literal(inside: str) -> None:
    """Check that brackets contain an IPv6 address, its zone after ``%25``."""
    try:
        address, _ = parse_address(inside.replace("%25", "%", 1))
    except ValueError as error:
        raise ValueError(f"invalid host: {error}") from None
    if address.version == 4:
        raise ValueError("invalid IP-literal")


def _refuse_bad_escapes(text: str) -> None:
    for match in _ESCAPE.finditer(text):
        if not _is_escape(match.group(1)):
            raise ValueError(f"invalid URL escape {go_quote(match.group())}")


def _is_escape(digits: str) -> bool:
    return len(digits) == 2 and digits[0] in _HEX and digits[1] in _HEX
