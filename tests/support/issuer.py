"""An OIDC issuer for tests: HTTPS on a free port, keys that can be changed, tokens on request."""

from __future__ import annotations

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

from instar.certificates import Authority
from instar.identity.keys import SigningKey, made_key, signing_key


class LocalIssuer:
    def __init__(self, url: str, authority: str) -> None:
        self.url = url
        self.authority = authority
        self.key: SigningKey = signing_key(made_key())
        self.claimed = url
        """What its discovery document says it is."""
        self.broken = False
        self.asked: list[str] = []

    def token(self, **claims: Any) -> str:
        now = int(time.time())
        standard = {"iss": self.url, "aud": "kube", "exp": now + 300, "sub": "jane", "jti": "id-1"}
        given = {name: value for name, value in {**standard, **claims}.items() if value is not None}
        return self.key.token(given)

    def document(self, path: str) -> Any:
        if self.broken:
            return None
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.claimed, "jwks_uri": f"{self.url}/keys"}
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
