"""Health and version: the only paths that need no credential.

The lines and names are those suites look for. What upstream does in hooks of its own after its
start is one thing here: what is stored has been read, and all that serves it is there.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping

from instar.base.errors import NotAcceptable
from instar.server.endpoints.groups import SERVER_VERSION
from instar.server.http.messages import Request, Response, text_response
from instar.server.rest.negotiate import JSON, clauses
from instar.server.rest.responses import json_response

_PATHS = ("/healthz", "/livez", "/readyz")
Check = Callable[[], str | None]
"""None when all is well, else what is wrong in a few words."""
_HOOKS = (
    "start-apiserver-admission-initializer",
    "start-kube-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "bootstrap-controller",
    "start-system-namespaces-controller",
    "scheduling/bootstrap-system-priority-classes",
    "start-cluster-authentication-info-controller",
    "start-kube-aggregator-informers",
    "apiservice-registration-controller",
    "apiservice-status-available-controller",
    "kube-apiserver-autoregistration",
    "apiservice-openapi-controller",
)


def _well() -> None:
    return None


def is_health_path(path: str) -> bool:
    return path.startswith(_PATHS)


class Health:
    def __init__(self, checks: Mapping[str, Check], started: Check) -> None:
        first: dict[str, Check] = {"ping": _well, "log": _well, **checks}
        last = {f"poststarthook/{hook}": started for hook in _HOOKS}
        last["autoregister-completion"] = started
        self._checks = {
            "healthz": {**first, **last},
            "livez": {**first, **last},
            "readyz": {**first, "informer-sync": started, **last},
        }
        self.paths = tuple(
            path
            for name, checks in self._checks.items()
            for path in (f"/{name}", *(f"/{name}/{check}" for check in checks))
        )

    def respond(self, request: Request) -> Response | None:
        name, _, check = request.path.strip("/").partition("/")
        if name == "version" and not check:
            return _version_response(request)
        checks = self._checks.get(name)
        if checks is None:
            return None
        if not check:
            return _report(name, checks, request)
        return _single(checks[check]) if check in checks else None


def _single(check: Check) -> Response:
    trouble = check()
    if trouble is None:
        return text_response(200, "ok")
    return text_response(500, f"internal server error: {trouble}\n")


def _report(path: str, checks: Mapping[str, Check], request: Request) -> Response:
    """Anybody may ask, so why a check fails is told on the check's own path only. A process that
    answers is alive: nothing that is checked here is mended by starting another."""
    excluded = dict.fromkeys(request.query.get("exclude", ()))
    lines, failed = [], False
    for name, check in checks.items():
        if name in excluded:
            del excluded[name]
            lines.append(f"[+]{name} excluded: ok")
        elif check() is None:
            lines.append(f"[+]{name} ok")
        elif path == "livez":
            lines.append(f"[+]{name} excluded: ok")
        else:
            failed = True
            lines.append(f"[-]{name} failed: reason withheld")
    if excluded:
        names = ",".join(f'"{name}"' for name in sorted(excluded))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    if failed:
        return text_response(500, "\n".join([*lines, f"{path} check failed"]) + "\n")
    if "verbose" in request.query:
        return text_response(200, "\n".join([*lines, f"{path} check passed"]) + "\n")
    return text_response(200, "ok")


def _version_response(request: Request) -> Response:
    accept = request.header(b"accept")
    if accept and not any(clause.media in (JSON, "*/*") for clause in clauses(accept)):
        text = f"406: Not Acceptable\n\nAvailable representations: {JSON}"
        raise NotAcceptable(text, details={})
    return json_response(200, _version())


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
