"""An OIDC issuer for tests: HTTPS on a free port, keys that can be changed, tokens on request."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from instar.base.certificates import Authority, new_private_key
from instar.server.identity.jwt import encode_base64url
from instar.server.identity.keys import SigningKey, signing_key


class LocalIssuer:
    def __init__(self, url: str, authority: str) -> None:
        self.url = url
        self.authority = authority
        self.key: SigningKey = signing_key(new_private_key())
        self.claimed = url
        """What its discovery document says it is."""
        self.broken = False
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}

    def consent(self, place: str) -> str:
        """Somebody signs in at the page the browser was sent to; where it is sent back to."""
        question = dict(parse_qsl(urlsplit(place).query))
        assert question["response_type"] == "code"
        code = f"code-{len(self._codes)}"
        self._codes[code] = question
        answer = urlencode({"code": code, "state": question["state"]})
        return f"{question['redirect_uri']}?{answer}"

    def exchange(self, form: str) -> Any:
        """The token endpoint; None is a refusal."""
        asked = dict(parse_qsl(form))
        question = self._codes.pop(asked.get("code", ""), None)
        if question is None or asked["redirect_uri"] != question["redirect_uri"]:
            return None
        digest = hashlib.sha256(asked["code_verifier"].encode()).digest()
        if encode_base64url(digest) != question["code_challenge"]:
            return None
        return {"id_token": self.token(aud=asked["client_id"], nonce=question["nonce"])}

    def token(self, **claims: Any) -> str:
        now = int(time.time())
        standard = {"iss": self.url, "aud": "kube", "exp": now + 300, "sub": "jane", "jti": "id-1"}
        given = {name: value for name, value in {**standard, **claims}.items() if value is not None}
        return self.key.token(given)

    def document(self, path: str) -> Any:
        if self.broken:
            return None
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.claimed,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
            }
        return {"keys": [self.key.public.jwk()]} if path == "/keys" else None


@contextmanager
def local_issuer(folder: Path) -> Iterator[LocalIssuer]:
    authority = Authority.make("issuer-ca", timedelta(days=1))
    pair = authority.server("issuer", ["127.0.0.1", "localhost"], timedelta(days=1))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "issuer.crt").write_bytes(pair.cert)
    (folder / "issuer.key").write_bytes(pair.key)
    (folder / "ca.crt").write_bytes(authority.pem.cert)
    issuers: list[LocalIssuer] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuers[0].asked.append(self.path)
            document = issuers[0].document(self.path)
            self.send_response(200 if document is not None else 500)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            document = issuers[0].exchange(form)
            self.send_response(200 if document is not None else 400)
            self.end_headers()
            self.wfile.write(json.dumps(document or {"error": "invalid_grant"}).encode())

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "issuer.crt", folder / "issuer.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    issuers.append(
        LocalIssuer(f"https://127.0.0.1:{server.server_port}", authority.pem.cert.decode())
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuers[0]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
