"""Flag ``--runtime-config`` of ``instar serve``: built-in group versions that are not served.

``cli/commands/serve.py`` adds and reads it. Only versions that the server itself does not need can
be switched off; there are no alpha and beta versions that could be switched on.
"""

from __future__ import annotations

import argparse
import logging

from instar.cli.shared.failure import CliFailure
from instar.server.registry.kinds.builtin_resources import GroupVersionName, builtin_versions

log = logging.getLogger(__name__)
_NEEDED_GROUPS = frozenset(
    {
        *("", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"),
        *("authentication.k8s.io", "authorization.k8s.io", "coordination.k8s.io"),
        *("discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io"),
        *("networking.k8s.io", "policy", "rbac.authorization.k8s.io", "scheduling.k8s.io"),
        "storagemigration.k8s.io",
    }
)
"""Groups of kinds that the server reads or writes itself."""
_TRUE, _FALSE = frozenset({"true", "1", "t", "True", "TRUE", ""}), frozenset({"false", "0", "f"})
_LEVELS = frozenset({"api/alpha", "api/beta"})
_WHOLE = frozenset({"api/all", "api/ga"})


def add_runtime_arguments(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--runtime-config",
        metavar="GROUP/VERSION=false",
        action="append",
        default=[],
        help="built-in versions that are not served, with commas: batch/v1=false",
    )


def switched_off(values: list[str]) -> frozenset[GroupVersionName]:
    """Return the group versions that are not served. Raises ``CliFailure``."""
    if not values:
        return frozenset()
    known, found = builtin_versions(), set()
    for part in (part.strip() for value in values for part in value.split(",")):
        if not part:
            continue
        name, _, value = part.partition("=")
        if value not in _TRUE | _FALSE:
            raise CliFailure(f"--runtime-config: invalid value {part}", code=2)
        group, _, version = name.rpartition("/")
        if name in _WHOLE | _LEVELS:
            if value in _FALSE and name in _WHOLE:
                raise _impossible(name)
            if value in _TRUE and name != "api/ga":
                log.warning("--runtime-config %s: there are stable versions only", part)
        elif name == "v1" or group == "api":
            if value in _FALSE:
                raise _impossible(name)
        elif not group or "/" in group:
            raise CliFailure(f"runtime-config invalid key {name}", code=2)
        elif group not in {each.group for each in known}:
            raise CliFailure(f"unknown api groups {name}", code=2)
        elif value in _FALSE and GroupVersionName(group, version) in known:
            if group in _NEEDED_GROUPS:
                raise _impossible(name)
            found.add(GroupVersionName(group, version))
    return frozenset(found)


def _impossible(name: str) -> CliFailure:
    text = f"--runtime-config {name}=false: this server needs it, and cannot switch it off"
    return CliFailure(text, code=2)
