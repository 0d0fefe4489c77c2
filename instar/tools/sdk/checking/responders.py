"""Adapters that convert objects for a check: a converter in this process, or a webhook behind a
URL.

``CheckCase`` calls them; ``instar check`` and ``instar review`` choose one by their flags.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import traceback
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit, urlunsplit

import orjson

from instar.base.json_values import Object
from instar.kube.api import conversion_review
from instar.kube.api.crd import Crd
from instar.tools.sdk.checking.case import Uncheckable
from instar.tools.sdk.converter import BuiltConverter
from instar.tools.sdk.errors import ConversionError
from instar.wire.client.transport import ConnectionLost
from instar.wire.conversion import contract

if TYPE_CHECKING:
    from instar.wire.client.http import Http


class InProcessResponder:
    """Calls a converter in this process. Reports errors with full details, because the objects are
    generated; a server must not quote objects in errors.
    """

    def __init__(self, converter: BuiltConverter, importable: str = "") -> None:
        """``importable`` is the name by which another process loads the converter; empty if
        none.
        """
        self._converter = converter
        self.code, self.importable = converter, importable
        self.tracebacks: dict[str, str] = {}
        """Tracebacks of failures in the author's code, by file and line."""

    def convert(self, objects: Sequence[Object], api_version: str) -> Sequence[Any]:
        try:
            return self._converter.convert_all(objects, api_version)
        except ConversionError as error:
            cause = error.__cause__
            if cause is None or isinstance(cause, ConversionError):
                raise
            frames = traceback.extract_tb(cause.__traceback__)
            place = f"{frames[-1].filename}:{frames[-1].lineno}"
            self.tracebacks.setdefault(place, "".join(traceback.format_exception(cause)))
            raise ConversionError(f"{error}: {cause}") from cause


def webhook_of(crd: Crd) -> tuple[str, str]:
    """Return the URL that a CRD sends its ConversionReviews to, and the PEM of the CA it trusts
    there.
    """
    client = crd.conversion.client
    if crd.conversion.strategy != "Webhook" or client is None:
        raise Uncheckable(f"{crd.name} has no conversion webhook; give --converter or --url")
    pem = base64.b64decode(client.ca_bundle or "").decode(errors="replace")
    if client.url:
        return client.url, pem
    service = client.service
    if service is None:
        raise Uncheckable(f"{crd.name}: its webhook has neither url nor service")
    path = "/" + (service.path or "").lstrip("/")
    return f"https://{service.name}.{service.namespace}.svc:{service.port or 443}{path}", pem


class UrlResponder:
    """Calls a webhook in any language. Use as a context manager.

    Laws are ordinary functions, so each call runs to its end on a private event loop.
    """

    def __init__(
        self,
        url: str,
        *,
        ca: Path | None = None,
        ca_data: str = "",
        connect: str = "",
        client_cert: tuple[Path, Path] | None = None,
        insecure: bool = False,
        review_version: str = "v1",
        timeout: float = 30,
    ) -> None:
        """``connect`` is the address (``HOST:PORT``) to dial if the name in the URL cannot be
        resolved.
        """
        self._url, self._timeout, self._version = url, timeout, review_version
        self._name: str | None = None
        if connect:
            parts = urlsplit(url)
            self._name = parts.hostname
            self._url = urlunsplit(parts._replace(netloc=connect))
        try:
            cafile = str(ca) if ca else None
            self._tls = ssl.create_default_context(cafile=cafile, cadata=ca_data or None)
            if insecure:
                self._tls.check_hostname = False
                self._tls.verify_mode = ssl.CERT_NONE
            if client_cert is not None:
                self._tls.load_cert_chain(*client_cert)
        except (OSError, ssl.SSLError) as error:
            raise Uncheckable(f"certificates for {url}: {error}") from None
        self._runner = asyncio.Runner()
        self._http: Http | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._http is not None:
            self._runner.run(self._http.close())
        self._runner.close()

    def convert(self, objects: Sequence[Object], api_version: str) -> Sequence[Any]:
        uid = str(uuid.uuid4())
        encoded = [orjson.dumps(obj) for obj in objects]
        body = conversion_review.encode_request(self._version, uid, api_version, encoded)
        data = self._runner.run(self._post(body))
        sent = conversion_review.ConversionRequest(self._version, uid, api_version, objects)
        try:
            return contract.check_answer(sent, conversion_review.parse_response(data))
        except (conversion_review.InvalidConversionReview, contract.BrokenContract) as error:
            raise ConversionError(str(error)) from None

    async def _post(self, body: bytes) -> bytes:
        # Only here: aiohttp takes longer to import than a converter in Python to be checked.
        from instar.wire.client.http import Http

        if self._http is None:
            self._http = Http(self._tls, self._timeout, proxies=False)
        headers = {"Content-Type": "application/json"}
        try:
            reply = await self._http.send(
                "POST", self._url, headers=headers, body=body, server_name=self._name
            )
        except TimeoutError as error:
            raise ConversionError(str(error)) from None
        except ConnectionLost as error:
            raise Uncheckable(f"{self._url}: {error}") from None
        if reply.status != 200:
            text = reply.body[:200].decode(errors="replace").strip()
            raise ConversionError(f"HTTP {reply.status}: {text}")
        return reply.body
