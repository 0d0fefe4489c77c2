"""Validates probes and lifecycle hooks: exactly one handler, valid numbers.

Called by ``containers.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from instar.base.field_errors import (
    FieldError,
    child,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.builtin_rules.basics import count_errors, port_errors, port_or_name_errors

_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_ONE_HANDLER = "may not specify more than 1 handler type"
_HEADER = re.compile(r"[-A-Za-z0-9]+", re.ASCII)
_HEADER_TEXT = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)


def liveness_errors(probe: Object, path: str) -> list[FieldError]:
    """Check a liveness or startup probe."""
    found = probe_errors(probe, path)
    if probe.get("successThreshold") != 1:
        where = child(path, "successThreshold")
        found.append(invalid(where, probe.get("successThreshold", 0), "must be 1"))
    return found


def readiness_errors(probe: Object, path: str) -> list[FieldError]:
    found = probe_errors(probe, path)
    given = probe.get("terminationGracePeriodSeconds")
    if given is not None:
        where = child(path, "terminationGracePeriodSeconds")
        found.append(invalid(where, given, "must not be set for readinessProbes"))
    return found


def probe_errors(probe: Object, path: str) -> list[FieldError]:
    found = [*handler_errors(probe, path), *count_errors(probe, path, *_NUMBERS)]
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        where = child(path, "terminationGracePeriodSeconds")
        found.append(invalid(where, grace, "must be greater than 0"))
    return found


def lifecycle_errors(lifecycle: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            found += handler_errors(lifecycle[name], child(path, name))
    return found


def handler_errors(handler: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    given = [name for name in _HANDLERS if handler.get(name) is not None]
    for name in given[:1]:
        found += _HANDLERS[name](handler[name], child(path, name))
    found += [forbidden(child(path, name), _ONE_HANDLER) for name in given[1:]]
    if not given:
        found.append(required(path, "must specify a handler type"))
    return found


def _exec(action: Object, path: str) -> list[FieldError]:
    return [] if action.get("command") else [required(child(path, "command"))]


def _http(action: Object, path: str) -> list[FieldError]:
    found = [] if action.get("path") else [required(child(path, "path"))]
    found += port_or_name_errors(action.get("port", 0), child(path, "port"))
    scheme = action.get("scheme", "")
    if scheme not in ("HTTP", "HTTPS"):
        found.append(not_supported(child(path, "scheme"), scheme, ("HTTP", "HTTPS")))
    where = child(path, "httpHeaders")
    for position, header in enumerate(action.get("httpHeaders") or ()):
        name = header.get("name", "")
        if _HEADER.fullmatch(name) is None:
            found.append(invalid(child(index(where, position), "name"), name, _HEADER_TEXT))
    return found


def _tcp(action: Object, path: str) -> list[FieldError]:
    return port_or_name_errors(action.get("port", 0), child(path, "port"))


def _grpc(action: Object, path: str) -> list[FieldError]:
    return port_errors(action.get("port", 0), child(path, "port"))


def _sleep(action: Object, path: str) -> list[FieldError]:
    seconds = action.get("seconds", 0)
    if seconds >= 0:
        return []
    text = "must be non-negative and less than terminationGracePeriodSeconds"
    return [invalid(path, seconds, text)]


_HANDLERS: dict[str, Callable[[Object, str], list[FieldError]]] = {
    "exec": _exec,
    "httpGet": _http,
    "tcpSocket": _tcp,
    "grpc": _grpc,
    "sleep": _sleep,
}
