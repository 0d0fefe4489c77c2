"""Keeps what the test server answered, and renders the last requests of a failed test.

The fixture ``instar`` of ``plugin.py`` attaches one ``ServedRequests`` to the access log of the
server in this process; the plugin adds ``shown`` to the report of a test that fails. Of a request
only its method, path, code and reason are kept, never a body or a header.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Iterator
from http.client import HTTPException, responses
from typing import TYPE_CHECKING

from instar.base.errors import ApiError
from instar.base.fast_dataclass import dataclass
from instar.tools.testing.manifests import INSTALL_IT

if TYPE_CHECKING:
    from instar.tools.testing.api_server import Server

_KEPT = 200
_SHOWN = 12
_OWN_LEVEL = logging.INFO - 1
"""Makes the server log each request. Another level is the choice of the test's author, whose
records go to the handlers as usual."""


@dataclass(frozen=True, slots=True)
class Served:
    """One request, and how the server answered it."""

    method: str
    path: str
    status: int
    reason: str
    message: str

    def line(self) -> str:
        said = f": {self.message}" if self.message else ""
        return f"{self.method} {self.path} {self.status} {self.reason}{said}"


class ServedRequests(logging.Filter):
    """Sees each record of the access log; a mark separates the tests."""

    def __init__(self) -> None:
        super().__init__()
        self._log = logging.getLogger("instar.access")
        self._served: deque[Served] = deque(maxlen=_KEPT)

    def filter(self, record: logging.LogRecord) -> bool:
        fields = getattr(record, "fields", None)
        if fields is None:
            return True
        failure = getattr(record, "failure", None)
        reason, message = responses.get(fields["status"], ""), ""
        if isinstance(failure, ApiError):
            reason, message = failure.reason or reason, failure.message
        self._served.append(
            Served(fields["method"], fields["path"], fields["status"], reason, message)
        )
        return self._log.level != _OWN_LEVEL

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        """See the requests until the end of the block."""
        before = self._log.level
        if not self._log.isEnabledFor(logging.INFO):
            self._log.setLevel(_OWN_LEVEL)
        self._log.addFilter(self)
        try:
            yield
        finally:
            self._log.removeFilter(self)
            if self._log.level == _OWN_LEVEL:
                self._log.setLevel(before)

    def forget(self) -> None:
        """Begin a test."""
        self._served.clear()

    def shown(self, server: Server) -> str:
        """Return the last requests of this test as lines, each missing kind named after them."""
        served = list(self._served)
        left_out = len(served) - _SHOWN
        lines = [f"({left_out} earlier)"] if left_out > 0 else []
        lines += [each.line() for each in served[-_SHOWN:]]
        lines += missing_kinds(server, served)
        return "\n".join(lines)


def missing_kinds(server: Server, served: list[Served]) -> list[str]:
    """Return a line for each resource that was asked for and that no installed CRD defines."""
    asked = dict.fromkeys(
        resource
        for each in served
        if each.status == 404 and (resource := _resource_of(each.path)) is not None
    )
    lines = []
    for version, plural in asked:
        # A server that has ended by now knows no kinds; the requests are worth showing still.
        with contextlib.suppress(OSError, HTTPException):
            names = server.served_at(f"/apis/{version}")
            if plural not in names:
                group = version.partition("/")[0]
                lines.append(f"No installed CRD serves {plural}.{group} at {version}. {INSTALL_IT}")
    return lines


def _resource_of(path: str) -> tuple[str, str] | None:
    """Return group/version and plural of a path below /apis, and None for any other path."""
    parts = path.strip("/").split("/")
    if len(parts) < 4 or parts[0] != "apis":
        return None
    inside = parts[3:]
    if inside[0] == "namespaces" and len(inside) > 2:
        inside = inside[2:]
    return f"{parts[1]}/{parts[2]}", inside[0]
