"""HTTPS client for documents of OIDC issuers (discovery, keys).

``trusted_issuers.py`` gives the client to the issuers; the console's OIDC login
(``tools/console/oidc.py``) posts forms with it. The client fetches in a thread, because fetches are
rare and small but may be slow.
"""

from __future__ import annotations

import asyncio
import ssl
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO

from instar.server.identity.oidc.issuer import Fetch, Fetched, FetchFailed

_TIMEOUT_SECONDS = 10.0
_MOST_BYTES = 1 << 20


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not newurl.startswith("https://"):
            raise FetchFailed(f"it redirects to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


Post = Callable[[str, Mapping[str, str], Mapping[str, str]], Awaitable[bytes]]
"""(URL, fields of a form, headers) → the body of the response. Raises ``FetchFailed``."""


def fetcher(authority: str) -> Fetch:
    """A function that GETs documents. ``authority``: CA certificates, PEM; empty: the system's.
    Raises ``ValueError``."""
    opener = _opener(authority)

    async def fetch(url: str) -> Fetched:
        return await asyncio.to_thread(_read, opener, url)

    return fetch


def poster(authority: str) -> Post:
    """A function that POSTs forms; see ``fetcher``."""
    opener = _opener(authority)

    async def post(url: str, fields: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
        data = urllib.parse.urlencode(fields).encode()
        return (await asyncio.to_thread(_read, opener, url, data, headers)).body

    return post


def _opener(authority: str) -> urllib.request.OpenerDirector:
    try:
        context = ssl.create_default_context(cadata=authority or None)
    except ssl.SSLError as error:
        raise ValueError(f"the certificate authority cannot be read: {error}") from error
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _OnlyHttps())


def _read(
    opener: urllib.request.OpenerDirector,
    url: str,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Fetched:
    if not url.startswith("https://"):
        raise FetchFailed(f"{url} is not https")
    try:
        request = urllib.request.Request(url, data, dict(headers or {}))
        with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
            body: bytes = answer.read(_MOST_BYTES + 1)
            kept = _max_age(answer.headers.get("Cache-Control", ""))
    except (OSError, HTTPException, ValueError) as error:
        raise FetchFailed(f"{url}: {error}") from error
    if len(body) > _MOST_BYTES:
        raise FetchFailed(f"{url}: the answer is larger than {_MOST_BYTES} bytes")
    return Fetched(body, kept)


def _max_age(header: str) -> float | None:
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "max-age" and value.isascii() and value.isdigit() and len(value) < 10:
            return float(value)
        if name.lower() in ("no-cache", "no-store"):
            return 0.0
    return None
