"""Baseline for the HTTP benchmarks: a bare ASGI application on uvicorn serves the same bytes over
TLS.

The application parses and checks nothing, so it measures the cost of HTTP and TLS in Python alone.
``bench/__main__.py`` compares the server with it.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_APP = """
from pathlib import Path

SMALL = Path("small.json").read_bytes()
LARGE = Path("large.json").read_bytes()


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = LARGE if scope["query_string"] else SMALL
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
"""


@contextmanager
def floor(folder: Path, small: bytes, large: bytes, certificates: Path) -> Iterator[str]:
    """Yield the URL of a server that responds with ``small``, or with ``large`` if there is a
    query.
    """
    (folder / "floor_app.py").write_text(_APP)
    (folder / "small.json").write_bytes(small)
    (folder / "large.json").write_bytes(large)
    port = 18443
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "floor_app:app", "--port", str(port)),
            *("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "error"),
            *("--ssl-certfile", str(certificates / "server.crt")),
            *("--ssl-keyfile", str(certificates / "server.key")),
        ],
        cwd=folder,
    )
    try:
        _wait(port)
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait(port: int) -> None:
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for _ in range(100):
        try:
            urllib.request.urlopen(f"https://127.0.0.1:{port}/", context=context, timeout=1).read()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError("the floor server did not start")
