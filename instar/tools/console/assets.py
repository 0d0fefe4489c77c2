"""Serves the built pages of the console from memory, compressed; called by ``pages.py``."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from instar.base.errors import NotFound
from instar.base.fast_dataclass import dataclass
from instar.server.http.messages import Header, Request, Response

FOLDER = Path(__file__).parent / "assets"
INDEX = "index.html"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_ALREADY_SMALL = (".png", ".woff2", ".ico")
_LEAST_HASH = 8
_FOREVER = b"public, max-age=31536000, immutable"
_ASK_AGAIN = b"no-cache"


@dataclass(frozen=True, slots=True)
class Asset:
    """One built file, in every content coding that browsers accept."""

    type: bytes
    tag: bytes
    cache: bytes
    forms: dict[str, bytes]
    """By content coding; the plain one is ``identity``."""


class Assets:
    """All files of the build, read and compressed once."""

    def __init__(self, folder: Path = FOLDER) -> None:
        files = sorted(path for path in folder.rglob("*") if path.suffix in _TYPES)
        self._files = {path.relative_to(folder).as_posix(): _read(path) for path in files}

    def respond(self, request: Request, path: str) -> Response:
        """Return a file below ``assets/``, else the page, which routes by itself."""
        named = path.startswith("assets/")
        asset = self._files.get(path if named else INDEX)
        if asset is None and named:
            raise NotFound(f"the console has no file {path[:200]}", details={})
        if asset is None:
            raise NotFound("this installation has no pages for the console", details={})
        headers: list[Header] = [
            (b"content-type", asset.type),
            (b"etag", asset.tag),
            (b"cache-control", asset.cache),
            (b"vary", b"Accept-Encoding"),
        ]
        if asset.tag in request.header(b"if-none-match").encode("latin-1").split(b", "):
            return Response(304, (), headers)
        coding = _chosen(request.header(b"accept-encoding"), asset)
        if coding != "identity":
            headers.append((b"content-encoding", coding.encode()))
        return Response(200, (asset.forms[coding],), headers)


def _read(path: Path) -> Asset:
    content = path.read_bytes()
    forms = {"identity": content}
    if path.suffix not in _ALREADY_SMALL:
        forms["gzip"] = _packed(path, ".gz") or gzip.compress(content, 9, mtime=0)
    found = _packed(path, ".br")
    if found is not None:
        forms["br"] = found
    digest = hashlib.sha256(content).hexdigest()[:32]
    return Asset(
        _TYPES[path.suffix].encode(),
        f'"{digest}"'.encode(),
        _FOREVER if is_hashed(path.name) else _ASK_AGAIN,
        forms,
    )


def is_hashed(name: str) -> bool:
    """Return whether the name has a content hash (``console-4f9a1c02.js``), so it can be cached."""
    stem = name.rpartition(".")[0].replace("-", ".")
    last = stem.rpartition(".")[2]
    named = "." in stem and len(last) >= _LEAST_HASH and last.replace("_", "").isalnum()
    return named and (last.isupper() or any(letter.isdigit() for letter in last))


def _packed(path: Path, suffix: str) -> bytes | None:
    beside = path.with_name(path.name + suffix)
    return beside.read_bytes() if beside.exists() else None


def _chosen(accepted: str, asset: Asset) -> str:
    """Return the best content coding that the browser accepts; identity without the header."""
    read = {
        clause.partition(";")[0].strip()
        for clause in accepted.lower().split(",")
        if clause.partition(";")[2].replace(" ", "").rstrip("0.") != "q="
    }
    usable = read & asset.forms.keys()
    return next((coding for coding in ("br", "gzip") if coding in usable), "identity")
