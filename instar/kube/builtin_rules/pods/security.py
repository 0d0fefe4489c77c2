"""Validates security contexts of pods and containers.

Called by ``pod_spec.py`` and ``containers.py``.
"""

from __future__ import annotations

import re

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.builtin_rules.basics import MOST_INT32
from instar.kube.builtin_rules.go_internal_text import internal

_ID_TEXT = f"must be between 0 and {MOST_INT32}, inclusive"
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_is_sysctl = re.compile(_SYSCTL, re.ASCII).match
_PROC_MOUNTS = ("Default", "Unmasked")
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")


def container_security_errors(context: Object, path: str) -> list[FieldError]:
    found = _id_errors(context, path, "runAsUser", "runAsGroup")
    mount = context.get("procMount")
    if mount is not None and mount not in _PROC_MOUNTS:
        found.append(not_supported(child(path, "procMount"), mount, _PROC_MOUNTS))
    found += _profile_errors(context.get("seccompProfile"), child(path, "seccompProfile"))
    if context.get("allowPrivilegeEscalation") is not False:
        return found
    if context.get("privileged"):
        text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        found.append(invalid(path, internal("SecurityContext", context), text))
    added = (context.get("capabilities") or {}).get("add") or ()
    if "CAP_SYS_ADMIN" in added:
        text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        found.append(invalid(path, internal("SecurityContext", context), text))
    return found


def pod_security_errors(context: Object, spec: Object, path: str) -> list[FieldError]:
    found = _id_errors(context, path, "fsGroup", "runAsUser", "runAsGroup")
    where = child(path, "supplementalGroups")
    for position, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= MOST_INT32:
            found.append(invalid(index(where, position), group, _ID_TEXT))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(invalid(child(path, "shareProcessNamespace"), True, text))
    found += _sysctl_errors(context.get("sysctls") or [], child(path, "sysctls"))
    for name, choices in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
    ):
        value = context.get(name)
        if value is not None and value not in choices:
            found.append(not_supported(child(path, name), value, choices))
    return found + _profile_errors(context.get("seccompProfile"), child(path, "seccompProfile"))


def _id_errors(context: Object, path: str, *names: str) -> list[FieldError]:
    return [
        invalid(child(path, name), context[name], _ID_TEXT)
        for name in names
        if context.get(name) is not None and not 0 <= context[name] <= MOST_INT32
    ]


def _sysctl_errors(sysctls: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, sysctl in enumerate(sysctls):
        name, where = sysctl.get("name", ""), child(index(path, position), "name")
        if not name:
            found.append(required(where))
        elif len(name) > 253 or _is_sysctl(name) is None:
            text = f"must have at most 253 characters and match regex {_SYSCTL}"
            found.append(invalid(where, name, text))
        elif name in seen:
            found.append(duplicate(where, name))
        seen.add(name)
    return found


def _profile_errors(profile: Object | None, path: str) -> list[FieldError]:
    if profile is None:
        return []
    type, local = profile.get("type", ""), profile.get("localhostProfile")
    where = child(path, "localhostProfile")
    if type not in _PROFILES:
        return [not_supported(child(path, "type"), type, _PROFILES)]
    if type == "Localhost" and not local:
        return [required(where, "must be set when seccomp type is Localhost")]
    if type != "Localhost" and local is not None:
        return [invalid(where, local, "can only be set when seccomp type is Localhost")]
    return []
