"""Checks which lifecycle steps of a CRD's versions are safe, and what blocks the others. Pure.

Called by ``instar versions`` and the console before an edit. The preconditions are those of the
Kubernetes documents on CRD versions. There is one function per step, which returns the reasons that
block the step, and none if the step is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from instar.base.escaping import shell_word
from instar.base.fast_dataclass import dataclass
from instar.base.plurals import counted
from instar.kube.api.crd import Crd
from instar.kube.api.names import compare_versions
from instar.kube.api.string_rules import dns1035_label
from instar.tools.migrator.census.references import Dependents, VersionReference
from instar.tools.migrator.census.usage import VersionUsage, VersionUse
from instar.tools.migrator.census.version_census import StoredVersionCensus

_SHOWN_USERS = 3


@dataclass(frozen=True, slots=True)
class Situation:
    """Input of the checks; unknown parts are None or empty."""

    crd: Crd
    census: StoredVersionCensus | None
    usage: VersionUsage
    now: datetime
    quiet: timedelta = timedelta(days=14)
    """How long a version must be unused before it may go."""
    clients_migrated: bool = False
    """The user vouches for the clients where no requests are counted."""
    cluster_known: bool = True
    """False when only a file was looked at."""
    dependents: Dependents | None = None
    """Looked for when a version is to go: objects whose owner references may name it."""
    named: VersionReference | None = None
    """Looked for when a version is to go: objects whose managedFields name it."""

    @property
    def storage(self) -> str:
        return self.crd.storage_version()


Judge = Callable[[Situation, str], list[str]]


def blocks_add(situation: Situation, version: str) -> list[str]:
    wrong = [f"{version} is no version name: {text}" for text in dns1035_label(version)]
    if situation.crd.version(version) is not None:
        wrong.append(f"{version} exists already")
    return wrong


def blocks_schema(crd: Crd, source: str, schema: Mapping[str, Any] | None) -> list[str]:
    """Return why a version with another schema is refused: it needs a conversion webhook."""
    model = crd.version(source or crd.storage_version())
    if model is None:
        return [f"there is no version {source} to copy from"]
    if schema is None or schema == model.schema or crd.conversion.strategy != "None":
        return []
    return [
        f"its schema differs from {model.name}'s, and conversion strategy None would silently drop "
        "what differs; set up a conversion webhook first (instar webhook --help)"
    ]


def blocks_serve(situation: Situation, version: str) -> list[str]:
    found = _missing(situation, version)
    known = situation.crd.version(version)
    return [*found, f"{version} is served already"] if known and known.served else found


def blocks_deprecate(situation: Situation, version: str) -> list[str]:
    found = _missing(situation, version)
    crd = situation.crd
    known = crd.version(version)
    if known is None:
        return found
    if known.deprecated:
        found.append(f"{version} is deprecated already")
    others = [v for v in crd.versions if v.name != version and v.served and not v.deprecated]
    if not others:
        found.append("no other served version is there to move to; add one first")
    elif not any(compare_versions(other.name, version) > 0 for other in others):
        names = ", ".join(other.name for other in others)
        found.append(f"only less stable versions would remain ({names})")
    return found


def blocks_storage(situation: Situation, version: str) -> list[str]:
    found = _missing(situation, version)
    known = situation.crd.version(version)
    if known is None:
        return found
    if known.storage:
        found.append(f"{version} is the storage version already")
    if not known.served:
        found.append(f"{version} is not served; serve it first, so that clients can read it")
    return found + _migrating(situation)


def blocks_unserve(situation: Situation, version: str) -> list[str]:
    found = _missing(situation, version)
    crd = situation.crd
    known = crd.version(version)
    if known is None:
        return found
    if not known.served:
        return [*found, f"{version} is not served any more"]
    if known.storage:
        found.append(f"{version} is the storage version; make another one that first")
    if crd.served() == [version]:
        found.append("it is the only served version")
    return found + _migrating(situation) + _in_use(situation, version)


def blocks_remove(situation: Situation, version: str) -> list[str]:
    found = _missing(situation, version)
    crd = situation.crd
    known = crd.version(version)
    if known is None:
        return found
    if known.storage:
        found.append(f"{version} is the storage version; make another one that first")
    if known.served:
        found.append(f"{version} is still served; unserve it first and wait for complaints")
    if known.storage:
        # Objects are stored in it until another version takes over: a migration changes nothing.
        return found + _migrating(situation) + _depended_on(situation)
    if not situation.cluster_known:
        return found
    if situation.census is None or not situation.census.counted:
        why = "nothing counts them" if situation.census is None else situation.census.how
        found.append(f"how many objects are stored in it is not known: {why}")
        return found + _migrating(situation) + _depended_on(situation)
    stored = situation.census.at_most(version)
    listed = version in crd.stored_versions
    if stored:
        number = situation.census.shown(version)
        verb = "is" if number == "1" else "are"
        text = f"{counted(number, 'object')} {verb} stored in it"
        if situation.census.assumed:
            text = (
                f"up to {counted(stored, 'object')} may be stored in it: storedVersions says "
                "otherwise, and nothing proves it"
            )
        found.append(f"{text}; run instar migrate {shell_word(crd.name)}")
    elif listed:
        found.append(
            f"status.storedVersions still names {version}; run instar migrate "
            f"{shell_word(crd.name)}"
        )
    return found + _migrating(situation) + _depended_on(situation)


def warnings_remove(situation: Situation, version: str) -> list[str]:
    """Return warnings about a removal that do not block it."""
    found = []
    crd, named, dependents = situation.crd, situation.named, situation.dependents
    if named is not None and named.count:
        found.append(
            f"managedFields of {counted(named.count, 'object')} name {version} (for example "
            f"{', '.join(named.keys[:_SHOWN_USERS])}): on a kube-apiserver the next write would "
            "drop every owner of them; carry them over first: "
            f"instar migrate {shell_word(crd.name)} --clean-managed-fields"
        )
    if named is not None and named.unseen:
        found.append(f"whose managedFields name {version} is not known: {named.unseen}")
    if dependents is not None and dependents.unseen:
        kinds = ", ".join(sorted(dependents.unseen)[:_SHOWN_USERS])
        found.append(f"owner references of some kinds could not be looked at: {kinds}")
    return found


def _depended_on(situation: Situation) -> list[str]:
    found = situation.dependents.found if situation.dependents is not None else []
    if not found:
        return []
    names = ", ".join(str(dependent) for dependent in found[:_SHOWN_USERS])
    return [
        f"owner references of {counted(len(found), 'object')} name it ({names}), and would lead "
        f"nowhere; run instar migrate {shell_word(situation.crd.name)} --owner-references"
    ]


def _migrating(situation: Situation) -> list[str]:
    """Return the block for a CRD under migration: a change of the CRD would make the migration
    fail.
    """
    crd = situation.crd
    if not crd.is_true("StorageMigrating"):
        return []
    message = crd.conditions["StorageMigrating"].get("message", "")
    return [
        f"a migration is under way ({message}); let it finish, or run instar migrate "
        f"{shell_word(crd.name)} "
        "if it was killed"
    ]


STEPS: Mapping[str, Judge] = {
    "add": blocks_add,
    "serve": blocks_serve,
    "deprecate": blocks_deprecate,
    "storage": blocks_storage,
    "unserve": blocks_unserve,
    "remove": blocks_remove,
}


def next_steps(situation: Situation, version: str) -> list[tuple[str, list[str]]]:
    """Return the possible steps of a version in its state, each with the reasons that block it."""
    known = situation.crd.version(version)
    if known is None:
        return []
    steps: list[str] = []
    if known.storage:
        return []
    if known.served:
        outranked = compare_versions(situation.storage, version) > 0
        if outranked:
            steps += [] if known.deprecated else ["deprecate"]
            steps += ["unserve", "remove"]
        else:
            steps += ["storage"]
    else:
        steps += ["serve", "remove"]
    return [(step, STEPS[step](situation, version)) for step in steps]


def why_safe(situation: Situation, step: str, version: str) -> str:
    """Return why a step is safe, for display."""
    usage = situation.usage
    if step == "unserve" and usage.since is not None:
        last = usage.latest(version)
        then = last.last if last is not None else usage.since
        return f"no request for {ago(situation.now, then).removesuffix(' ago')}"
    if step == "remove":
        how = "" if situation.census is None else f" ({situation.census.how})"
        return f"it is not served, and no object is stored in it{how}"
    return ""


def _missing(situation: Situation, version: str) -> list[str]:
    names = ", ".join(item.name for item in situation.crd.versions)
    known = situation.crd.version(version) is not None
    return [] if known else [f"there is no version {version}; there is {names}"]


def _in_use(situation: Situation, version: str) -> list[str]:
    """Return why clients may still need a version."""
    usage, crd = situation.usage, situation.crd
    if situation.clients_migrated:
        return []
    if usage.since is None:
        return [
            "no requests are counted here: give audit logs (--audit-log), or vouch for the clients "
            "(--clients-migrated)"
        ]
    begin = situation.now - situation.quiet
    users = usage.users(version, begin)
    if users:
        names = "; ".join(
            f"{_named_client(use)} {use.verb} {ago(situation.now, use.last)}"
            for use in users[:_SHOWN_USERS]
        )
        more = f" and {len(users) - _SHOWN_USERS} more" if len(users) > _SHOWN_USERS else ""
        return [f"it is in use: {names}{more}"]
    if usage.since > begin:
        known = ago(situation.now, usage.since).removesuffix(" ago")
        return [
            f"requests are known for {known} only, not {situation.quiet.days} days; wait, or vouch "
            f"for the clients of {crd.name} (--clients-migrated)"
        ]
    return []


def ago(now: datetime, then: datetime) -> str:
    seconds = max(0, int((now - then).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def _named_client(use: VersionUse) -> str:
    """Return `kubectl/v1.36 (alice)`, or the user alone where the client sent no user agent."""
    return f"{use.agent} ({use.user})" if use.agent else use.user
