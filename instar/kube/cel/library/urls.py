"""CEL functions for URLs: ``url(text)``, its parts, and ``isURL``.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_plus

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import go_quote
from instar.kube.cel.functions import (
    Overload,
    estimated_copy,
    first_argument_cost,
    function,
    method,
)
from instar.kube.cel.go_url import GoUrl, parse, parse_request_uri
from instar.kube.cel.types import BOOL, STRING, Type, list_of, map_of, message
from instar.kube.cel.values import CelError, Opaque

URL = message("kubernetes.URL")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class CelUrl(Opaque):
    cel_type = "kubernetes.URL"
    parts: GoUrl

    def hostname(self) -> str:
        host = self.parts.host
        if host.startswith("["):
            return host[1 : host.find("]")]
        return host.rpartition(":")[0] if ":" in host else host

    def port(self) -> str:
        host = self.parts.host
        tail = host.rpartition("]")[2] if host.startswith("[") else host
        return tail.rpartition(":")[2] if ":" in tail else ""

    def parameters(self) -> dict[str, list[str]]:
        out: dict[str, list[str]] = {}
        for part in self.parts.query.split("&"):
            if not part or ";" in part:
                continue
            name, _, value = part.partition("=")
            if _BAD_ESCAPE.search(part):
                continue
            out.setdefault(unquote_plus(name), []).append(unquote_plus(value))
        return out


def parse_url(text: str) -> CelUrl:
    try:
        return CelUrl(parse(text))
    except ValueError as error:
        raise CelError(
            f"URL parse error during conversion from string: parse {go_quote(text)}: {error}"
        ) from None


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except ValueError:
        return False
    return True


def overloads() -> list[Overload]:
    def accessor(name: str, impl: Any) -> Overload:
        return method(name, (URL,), STRING, impl)

    return [
        function(
            "url",
            (STRING,),
            URL,
            parse_url,
            work=first_argument_cost,
            estimate=estimated_copy,
            by_name=True,
        ),
        function("isURL", (STRING,), BOOL, _is_url),
        accessor("getScheme", lambda url: url.parts.scheme),
        accessor("getHost", lambda url: url.parts.host),
        accessor("getHostname", CelUrl.hostname),
        accessor("getPort", CelUrl.port),
        accessor("getEscapedPath", lambda url: url.parts.path),
        method("getQuery", (URL,), map_of(STRING, list_of(STRING)), CelUrl.parameters),
    ]


def type_names() -> list[tuple[str, Type]]:
    return [(URL.name, URL)]
