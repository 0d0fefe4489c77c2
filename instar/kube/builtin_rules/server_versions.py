"""Validates what API servers say about their versions: LeaseCandidates and StorageVersions.

Called by ``server/registry/kinds/cluster.py``.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from instar.kube.api.string_rules import (
    dns1035_label,
    dns1123_subdomain,
    qualified_name,
    regex_text,
)
from instar.kube.builtin_rules.basics import config_key_errors, immutable_errors, texts_at
from instar.kube.cel.library.semver import Semver, parse_semver
from instar.kube.cel.values import CelError

_OLDEST = "OldestEmulationVersion"
_NO_VERSION = "must be a valid semantic version"
_LABEL = (
    "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with "
    "an alphabetic character, and end with an alphanumeric character"
)
_EMPTY = "must be non-empty"


# LeaseCandidate -----------------------------------------------------------------------------------


def candidate_name(name: str, prefix: bool) -> list[str]:
    return [error.detail for error in config_key_errors(name, "")]


def candidate_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = [] if spec.get("leaseName") else [required("spec.leaseName")]
    emulated, binary = spec.get("emulationVersion", ""), spec.get("binaryVersion", "")
    emulates, is_binary = _semver(emulated), _semver(binary)
    if emulated and emulates is None:
        found.append(invalid("spec.emulationVersion", emulated, _NO_VERSION))
    if not binary:
        found.append(required("spec.binaryVersion"))
    elif is_binary is None:
        found.append(invalid("spec.binaryVersion", binary, _NO_VERSION))
    zero = Semver((0, 0, 0))
    if binary and emulated and (is_binary or zero).rank() < (emulates or zero).rank():
        text = "must be greater than or equal to `emulationVersion`"
        found.append(invalid("spec.binaryVersion", binary, text))
    return found + _strategy_errors(spec.get("strategy", ""), emulates or zero)


def _strategy_errors(strategy: str, emulates: Semver) -> list[FieldError]:
    if not strategy:
        return [required("spec.strategy")]
    found: list[FieldError] = []
    if strategy == _OLDEST and emulates.rank() == Semver((0, 0, 0)).rank():
        text = f"must be specified when `strategy` is '{_OLDEST}'"
        found.append(required("spec.emulationVersion", text))
    where = "spec.strategy.strategy"
    if "/" in strategy:
        return found + texts_at(where, strategy, qualified_name(strategy))
    return found if strategy == _OLDEST else [*found, not_supported(where, strategy, (_OLDEST,))]


def candidate_change_errors(new: Object, old: Object) -> list[FieldError]:
    after, before = ((obj.get("spec") or {}).get("leaseName", "") for obj in (new, old))
    return immutable_errors(after, before, "spec.leaseName")


def _semver(text: str) -> Semver | None:
    try:
        return parse_semver(text)
    except CelError:
        return None


# StorageVersion -----------------------------------------------------------------------------------


def storage_version_name(name: str, prefix: bool) -> list[str]:
    group, dot, resource = name.rpartition(".")
    if not dot:
        return ["name must be in the form of <group>.<resource>"]
    return [
        *(f"the group segment {text}" for text in dns1123_subdomain(group)),
        *(f"the resource segment {text}" for text in dns1035_label(resource)),
    ]


def storage_version_errors(obj: Object) -> list[FieldError]:
    status = obj.get("status") or {}
    servers = status.get("storageVersions") or []
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, server in enumerate(servers):
        where, name = index("status.storageVersions", position), server.get("apiServerID", "")
        if name in seen:
            found.append(duplicate(child(where, "apiServerID"), name))
        seen.add(name)
        found += _server_errors(server, where)
    found += _common_errors(status.get("commonEncodingVersion"), _common(servers))
    return found + _state_errors(status.get("conditions") or [])


def _server_errors(server: Object, where: str) -> list[FieldError]:
    name, encoding = server.get("apiServerID", ""), server.get("encodingVersion", "")
    decodable = server.get("decodableVersions") or []
    found = texts_at(child(where, "apiServerID"), name, dns1123_subdomain(name))
    found += _api_version_errors(encoding, child(where, "encodingVersion"))
    for position, version in enumerate(decodable):
        found += _api_version_errors(version, index(child(where, "decodableVersions"), position))
    if encoding not in decodable:
        text = f"decodableVersions must include encodingVersion {encoding}"
        found.append(invalid(child(where, "decodableVersions"), decodable, text))
    for position, version in enumerate(server.get("servedVersions") or ()):
        place = index(child(where, "servedVersions"), position)
        found += _api_version_errors(version, place)
        if version not in decodable:
            listed = f"[{' '.join(decodable)}]"
            text = f"individual served version : {version} must be included in decodableVersions : "
            found.append(invalid(place, version, text + listed))
    return found


def _api_version_errors(text: str, path: str) -> list[FieldError]:
    parts = text.split("/")
    if len(parts) > 2:
        label = regex_text(_LABEL, "[a-z]([-a-z0-9]*[a-z0-9])?", "my-name", "abc-123")
        more = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"
        return [invalid(path, text, f"an apiVersion is {label}{more}")]
    told: list[str] = []
    if len(parts) == 2:
        told += _part_errors("group", parts[0], dns1123_subdomain(parts[0]))
    told += _part_errors("version", parts[-1], dns1035_label(parts[-1]))
    return [invalid(path, text, ",".join(told))] if told else []


def _part_errors(what: str, text: str, problems: Iterable[str]) -> list[str]:
    return [f"{what} part: {each}" for each in (problems if text else (_EMPTY,))]


def _common(servers: list[Object]) -> str | None:
    versions = {server.get("encodingVersion", "") for server in servers}
    return versions.pop() if len(versions) == 1 else None


def _common_errors(said: str | None, common: str | None) -> list[FieldError]:
    if said == common:
        return []
    if common is None:
        text = (
            "should be nil if servers do not agree on the same encoding version, or if there is no "
            "server reporting the supported versions yet"
        )
    elif said is None:
        text = f"the common encoding version is {common}"
    else:
        text = f"the actual common encoding version is {common}"
    return [invalid("status.commonEncodingVersion", said, text)]


def _state_errors(conditions: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: dict[str, int] = {}
    for position, condition in enumerate(conditions):
        where, kind = index("status", position), condition.get("type", "")
        if kind in seen:
            text = (
                "the type of the condition is not unique, it also appears in "
                f"conditions[{seen[kind]}]"
            )
            found.append(invalid(child(where, "type"), kind, text))
        seen[kind] = position
        found += texts_at(child(where, "type"), kind, qualified_name(kind))
        status = condition.get("status", "")
        found += texts_at(child(where, "status"), status, qualified_name(status))
        found += [
            required(child(where, name))
            for name in ("reason", "message")
            if not condition.get(name)
        ]
    return found
