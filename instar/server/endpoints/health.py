"""Health endpoints (/healthz, /livez, /readyz) and /version, which need no credentials.

``server/app.py`` calls it, even before the store has been loaded. The check names are
kube-apiserver's, because clients look for them; ``lifecycle/start_hooks.py`` makes the checks of
its post-start hooks. Each check of a whole report is counted for ``/metrics/slis``.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping

from instar.base.errors import NotAcceptable
from instar.base.metrics import Counter, Labels, Measured, Metric
from instar.server.endpoints.groups import SERVER_VERSION
from instar.server.http.messages import Request, Response, text_response
from instar.server.rest.negotiate import JSON, clauses
from instar.server.rest.responses import json_response
from instar.server.rest.unserved_paths import not_allowed

Check = Callable[[], str | None]
"""Returns None if all is well, else a few words about the problem."""
SLIS = frozenset({"kubernetes_healthcheck", "kubernetes_healthchecks_total"})
"""Names of the metrics that ``/metrics/slis`` shows."""


def _no_trouble() -> None:
    return None


class Health:
    """Health checks by name."""

    def __init__(
        self, checks: Mapping[str, Check], hooks: Mapping[str, Check], reading: Check
    ) -> None:
        """``hooks``: checks of post-start hooks. ``reading`` fails until the store is read."""
        every = {"ping": _no_trouble, "log": _no_trouble, **checks}
        self._checks = {
            "healthz": {**every, **hooks},
            "livez": {**every, **hooks},
            "readyz": {
                **every,
                **({"etcd-readiness": checks["etcd"]} if "etcd" in checks else {}),
                "informer-sync": reading,
                **hooks,
                "shutdown": self._stops,
            },
        }
        self.paths = tuple(
            path
            for name, checks in self._checks.items()
            for path in (f"/{name}", *(f"/{name}/{check}" for check in checks))
        )
        self.stopping = False
        """Whether the server takes no new connections any more."""
        self._latest: dict[Labels, float] = {}
        self._results = Counter(
            "kubernetes_healthchecks_total",
            "Results of all health checks, by check, endpoint and status.",
            ("name", "type", "status"),
        )

    def _stops(self) -> str | None:
        return "process is shutting down" if self.stopping else None

    def metrics(self) -> tuple[Metric, ...]:
        help = "Result of the latest health check, by check and endpoint: 1 if all was well."
        latest = Measured("kubernetes_healthcheck", help, ("name", "type"), self._latest.items)
        return latest, self._results

    def respond(self, request: Request) -> Response | None:
        name, _, check = request.path.strip("/").partition("/")
        if name == "version" and not check:
            if request.method not in ("GET", "HEAD"):
                raise not_allowed()
            return _version_response(request)
        checks = self._checks.get(name)
        if checks is None:
            return None
        if not check:
            return self._report(name, checks, request)
        return _single(checks[check]) if check in checks else None

    def _report(self, path: str, checks: Mapping[str, Check], request: Request) -> Response:
        """All checks, a line each. The path is public, so reasons are shown only on a check's own
        path. /livez never fails: restarting the process repairs nothing that is checked here."""
        excluded = dict.fromkeys(request.query.get("exclude", ()))
        lines, failed = [], False
        for name, check in checks.items():
            if name in excluded:
                del excluded[name]
                lines.append(f"[+]{name} excluded: ok")
            elif self._is_well(path, name, check):
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

    def _is_well(self, path: str, name: str, check: Check) -> bool:
        well = check() is None
        self._latest[name, path] = 1.0 if well else 0.0
        self._results.add((name, path, "success" if well else "error"))
        return well


def _single(check: Check) -> Response:
    trouble = check()
    if trouble is None:
        return text_response(200, "ok")
    return text_response(500, f"internal server error: {trouble}\n")


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
