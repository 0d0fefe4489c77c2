"""Flag ``--runtime-config`` of ``instar serve``: which built-in group versions are served.

``cli/commands/serve.py`` adds and reads it. Beta and alpha versions can be switched on; versions
that the server itself does not need can be switched off. As upstream, ``api/all`` counts least,
then a level (``api/beta``), then a group version.
"""

from __future__ import annotations

import argparse
import re

from instar.cli.shared.failure import CliFailure
from instar.server.registry.kinds.builtin_resources import (
    GroupVersionName,
    default_versions,
    known_versions,
)

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
_ALL, _LEVELS = "api/all", {"api/ga": "v[0-9]+", "api/beta": ".*beta.*", "api/alpha": ".*alpha.*"}


def add_runtime_arguments(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--runtime-config",
        metavar="GROUP/VERSION=BOOL",
        action="append",
        default=[],
        help="built-in versions that are served or not, with commas: "
        "batch/v1=false,resource.k8s.io/v1beta2=true; api/beta=true for all beta versions",
    )


def served_versions(values: list[str]) -> frozenset[GroupVersionName]:
    """Return the group versions that are served. Raises ``CliFailure``."""
    wanted = _wanted(values)
    known, found = known_versions(), set(default_versions())
    for name, pattern in ((_ALL, ".*"), *_LEVELS.items()):
        if name in wanted:
            chosen = {each for each in known if re.fullmatch(pattern, each.version)}
            found = found | chosen if wanted.pop(name) else found - chosen
    for name, on in wanted.items():
        group, _, version = name.rpartition("/")
        chosen = {GroupVersionName(group, version)} & known
        found = found | chosen if on else found - chosen
    lost = {each for each in default_versions() - found if each.group in _NEEDED_GROUPS}
    if lost:
        first = min(lost)
        raise _impossible(f"{first.group}/{first.version}".lstrip("/"))
    return frozenset(found)


def _wanted(values: list[str]) -> dict[str, bool]:
    """Return what is said of each key; the last word counts."""
    groups = {each.group for each in known_versions()}
    found: dict[str, bool] = {}
    for part in (part.strip() for value in values for part in value.split(",")):
        if not part:
            continue
        name, _, value = part.partition("=")
        if value not in _TRUE | _FALSE:
            raise CliFailure(f"--runtime-config: invalid value {part}", code=2)
        name = {"v1": "/v1", "api/v1": "/v1"}.get(name, name)
        group, slash, _ = name.rpartition("/")
        if name != _ALL and name not in _LEVELS:
            if not slash or "/" in group:
                raise CliFailure(f"runtime-config invalid key {name}", code=2)
            if group not in groups:
                raise CliFailure(f"unknown api groups {name}", code=2)
        found[name] = value in _TRUE
    return found


def _impossible(name: str) -> CliFailure:
    text = f"--runtime-config {name}=false: this server needs it, and cannot switch it off"
    return CliFailure(text, code=2)
