"""Evaluates a pod against a level and version of the Pod Security Standards.

The PodSecurity plugin calls ``violations``. The table lists every check with the minor versions
from which each form of it applies, and the baseline checks that a restricted one replaces.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from instar.kube.pod_security import baseline, restricted
from instar.kube.pod_security.labels import LATEST, LevelVersion, PodSecurityLevel
from instar.kube.pod_security.pod_view import (
    PodCheck,
    PodView,
    Violation,
    for_linux,
    for_user_namespaces,
)

NEWEST = 36
"""The minor version that ``latest`` means."""


class VersionedCheck(NamedTuple):
    """A check with the minor versions from which each form of it applies."""

    id: str
    forms: tuple[tuple[int, PodCheck], ...]
    """(first minor version, check), oldest first."""
    replaces: str = ""


_BASELINE = (
    VersionedCheck("appArmorProfile", ((0, baseline.app_armor_profile),)),
    VersionedCheck("capabilities_baseline", ((0, baseline.capabilities),)),
    VersionedCheck("hostNamespaces", ((0, baseline.host_namespaces),)),
    VersionedCheck("hostPathVolumes", ((0, baseline.host_path_volumes),)),
    VersionedCheck("hostPorts", ((0, baseline.host_ports),)),
    VersionedCheck("hostProbesAndHostLifecycle", ((34, baseline.host_probes_and_lifecycle),)),
    VersionedCheck("privileged", ((0, baseline.privileged),)),
    VersionedCheck(
        "procMount",
        ((0, baseline.proc_mount), (35, for_user_namespaces(baseline.proc_mount))),
    ),
    VersionedCheck(
        "seLinuxOptions",
        (
            (0, baseline.selinux_options(baseline.SELINUX_TYPES)),
            (31, baseline.selinux_options(baseline.SELINUX_TYPES_1_31)),
        ),
    ),
    VersionedCheck(
        "seccompProfile_baseline",
        ((0, baseline.seccomp_annotations), (19, baseline.bad_seccomp_setters)),
    ),
    VersionedCheck(
        "sysctls",
        (
            (0, baseline.sysctls(baseline.SYSCTLS)),
            (27, baseline.sysctls(baseline.SYSCTLS_1_27)),
            (29, baseline.sysctls(baseline.SYSCTLS_1_29)),
            (32, baseline.sysctls(baseline.SYSCTLS_1_32)),
        ),
    ),
    VersionedCheck("windowsHostProcess", ((0, baseline.windows_host_process),)),
)
_RESTRICTED = (
    VersionedCheck(
        "allowPrivilegeEscalation",
        ((8, restricted.privilege_escalation), (25, for_linux(restricted.privilege_escalation))),
    ),
    VersionedCheck(
        "capabilities_restricted",
        ((22, restricted.dropped_capabilities), (25, for_linux(restricted.dropped_capabilities))),
        replaces="capabilities_baseline",
    ),
    VersionedCheck("procMount_restricted", ((35, baseline.proc_mount),), replaces="procMount"),
    VersionedCheck(
        "restrictedVolumes", ((0, restricted.volume_types),), replaces="hostPathVolumes"
    ),
    VersionedCheck(
        "runAsNonRoot",
        ((0, restricted.run_as_non_root), (35, for_user_namespaces(restricted.run_as_non_root))),
    ),
    VersionedCheck(
        "runAsUser",
        ((23, restricted.run_as_user), (35, for_user_namespaces(restricted.run_as_user))),
    ),
    VersionedCheck(
        "seccompProfile_restricted",
        ((19, restricted.seccomp_profile), (25, for_linux(restricted.seccomp_profile))),
        replaces="seccompProfile_baseline",
    ),
)


def violations(policy: LevelVersion, pod: PodView) -> list[Violation]:
    """Return the violations of a level and version by a pod, in upstream's order."""
    minor = NEWEST if policy.minor == LATEST else min(policy.minor, NEWEST)
    return [found for check in _checks(policy.level, minor) if (found := check(pod)) is not None]


@lru_cache(maxsize=256)
def _checks(level: PodSecurityLevel, minor: int) -> tuple[PodCheck, ...]:
    if level is PodSecurityLevel.PRIVILEGED:
        return ()
    stricter = _RESTRICTED if level is PodSecurityLevel.RESTRICTED else ()
    added = [(row, _form(row, minor)) for row in stricter]
    replaced = {row.replaces for row, form in added if form is not None}
    kept = [_form(row, minor) for row in _BASELINE if row.id not in replaced]
    return tuple(form for form in (*kept, *(form for _, form in added)) if form is not None)


def _form(check: VersionedCheck, minor: int) -> PodCheck | None:
    """Return the newest form that a version has, or None for versions before the first."""
    found = [form for since, form in check.forms if since <= minor]
    return found[-1] if found else None
