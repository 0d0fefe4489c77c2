"""URLs as Go's ``ParseRequestURI`` reads them: absolute, or an absolute path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_plus, unquote_to_bytes

from instar.cel.functions import (
    TRAVERSAL,
    Estimate,
    Overload,
    Site,
    function,
    method,
    per_byte,
)
from instar.cel.types import BOOL, STRING, Type, list_of, map_of, message
from instar.cel.values import CelError, Opaque
from instar.fields import go_quote

URL = message("kubernetes.URL")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_BAD_HOST = re.compile(r"[\x00-\x20\"<>\\^`{|}\x7f]")
_PATH_SAFE = "$&+,/:;=@-_.~!'()*[]"


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    cel_type = "kubernetes.URL"
    scheme: str
    host: str
    path: str
    """As it must be written: escapes kept where they were right."""
    query: str

    def hostname(self) -> str:
        host = self.host
        if host.startswith("["):
            return host[1 : host.find("]")]
        return host.rpartition(":")[0] if ":" in host else host

    def port(self) -> str:
        tail = self.host.rpartition("]")[2] if self.host.startswith("[") else self.host
        return tail.rpartition(":")[2] if ":" in tail else ""

    def parameters(self) -> dict[str, list[str]]:
        out: dict[str, list[str]] = {}
        for part in self.query.split("&"):
            if not part or ";" in part:
                continue
            name, _, value = part.partition("=")
            if _BAD_ESCAPE.search(part):
                continue
            out.setdefault(unquote_plus(name), []).append(unquote_plus(value))
        return out


def parse_url(text: str) -> Url:
    try:
        return read_url(text)
    except ValueError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


def read_url(text: str) -> Url:
    """Judged as a whole, then read without its fragment: upstream parses twice, too.

    Raises ``ValueError`` with Go's text.
    """
    try:
        whole = _parse(text)
        head, mark, _ = text.partition("#")
        return _parse(head) if mark else whole
    except ValueError as error:
        raise ValueError(f"parse {go_quote(text)}: {error}") from None


def _parse(text: str) -> Url:
    if not text:
        raise ValueError("empty url")
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise ValueError("net/url: invalid control character in URL")
    scheme, rest = _scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme:
            raise ValueError("invalid URI for request")
        # "mailto:x" is opaque: no host and no path.
        return Url(scheme, "", "", query)
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        host = _host(authority.rpartition("@")[2])
        rest = slash + path
    return Url(scheme, host, _escaped_path(rest), query)


def _scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is not None:
        return match.group(1).lower(), text[match.end() :]
    head = text.partition("/")[0]
    if ":" in head:
        if head.startswith(":"):
            raise ValueError("missing protocol scheme")
        raise ValueError("first path segment in URL cannot contain colon")
    return "", text


def _host(authority: str) -> str:
    if authority.startswith("["):
        end = authority.find("]")
        if end < 0:
            raise ValueError("missing ']' in host")
        port = authority[end + 1 :]
    else:
        port = ":" + authority.partition(":")[2] if ":" in authority else ""
        if authority.count(":") > 1:
            port = ":" + authority.rpartition(":")[2]
    if port and not (port.startswith(":") and (port[1:] == "" or _is_number(port[1:]))):
        raise ValueError(f"invalid port {go_quote(port)} after host")
    if (bad := _BAD_HOST.search(authority)) is not None:
        raise ValueError(f"invalid character {go_quote(bad.group())} in host name")
    if (escape := _BAD_ESCAPE.search(authority)) is not None:
        raise ValueError(
            f"invalid URL escape {go_quote(authority[escape.start() : escape.start() + 3])}"
        )
    return unquote_to_bytes(authority).decode(errors="replace")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _escaped_path(path: str) -> str:
    escape = _BAD_ESCAPE.search(path)
    if escape is not None:
        raise ValueError(
            f"invalid URL escape {go_quote(path[escape.start() : escape.start() + 3])}"
        )
    return quote(path, safe=_PATH_SAFE + "%")


def _is_url(text: str) -> bool:
    try:
        parse_url(text)
    except CelError:
        return False
    return True


def _estimated_url(site: Site) -> Estimate:
    size = site.args[0].known()
    return Estimate(size.scaled(TRAVERSAL), size)


def overloads() -> list[Overload]:
    def accessor(name: str, impl: Any) -> Overload:
        return method(name, (URL,), STRING, impl)

    return [
        function(
            "url",
            (STRING,),
            URL,
            parse_url,
            work=per_byte,
            estimate=_estimated_url,
            by_name=True,
        ),
        function("isURL", (STRING,), BOOL, _is_url),
        accessor("getScheme", lambda url: url.scheme),
        accessor("getHost", lambda url: url.host),
        accessor("getHostname", Url.hostname),
        accessor("getPort", Url.port),
        accessor("getEscapedPath", lambda url: url.path),
        method("getQuery", (URL,), map_of(STRING, list_of(STRING)), Url.parameters),
    ]


def type_names() -> list[tuple[str, Type]]:
    return [(URL.name, URL)]
