"""Health and version: the only paths that need no credential."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping

from instar.server.documents import SERVER_VERSION
from instar.server.request import Request
from instar.server.responses import Response, json_response, text_response

Check = Callable[[], str | None]
"""None when all is well, else what is wrong in a few words."""


class Health:
    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks

    def respond(self, request: Request) -> Response | None:
        parts = [part for part in request.path.split("/") if part]
        if parts == ["version"]:
            return json_response(200, _version())
        if not parts or parts[0] not in ("livez", "readyz", "healthz"):
            return None
        checks = dict(self._checks) if parts[0] != "livez" else {}
        if len(parts) == 2:
            if parts[1] != "ping" and parts[1] not in self._checks:
                return None
            checks = {parts[1]: self._checks[parts[1]]} if parts[1] in self._checks else {}
        return _report(parts[0], checks, verbose="verbose" in request.query)


def _report(name: str, checks: Mapping[str, Check], *, verbose: bool) -> Response:
    lines = ["[+]ping ok"]
    failed = False
    for check, ask in checks.items():
        trouble = ask()
        failed = failed or trouble is not None
        lines.append(f"[+]{check} ok" if trouble is None else f"[-]{check} failed: {trouble}")
    if failed:
        return text_response(500, "\n".join([*lines, f"{name} check failed"]) + "\n")
    if verbose:
        return text_response(200, "\n".join([*lines, f"{name} check passed"]) + "\n")
    return text_response(200, "ok")


def _version() -> dict[str, str]:
    return {
        "major": "1",
        "minor": "36",
        "gitVersion": SERVER_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": f"CPython {platform.python_version()}",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
