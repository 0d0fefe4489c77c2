"""Review rules about versions of a CRD: present, served, deprecated, stored.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_kit import (
    CLIENTS,
    ERROR,
    INFO,
    READERS,
    STORED,
    WARNING,
    WRITERS,
    CrdCheck,
    FindingDraft,
    Probe,
    ReviewRule,
)

RULES = (
    ReviewRule(
        "version-removed",
        ERROR,
        "a version is gone: requests to it answer 404",
        (WRITERS, READERS, CLIENTS),
    ),
    ReviewRule(
        "version-unserved",
        ERROR,
        "a version is no longer served: requests to it answer 404",
        (WRITERS, READERS, CLIENTS),
    ),
    ReviewRule(
        "version-served", INFO, "a version is served again or for the first time", (READERS,)
    ),
    ReviewRule("version-added", INFO, "a new version", (READERS,)),
    ReviewRule("version-deprecated", INFO, "requests to a version carry a warning now", (CLIENTS,)),
    ReviewRule("deprecation-changed", INFO, "a deprecation was withdrawn or reworded", (CLIENTS,)),
    ReviewRule(
        "storage-version-changed",
        WARNING,
        "new writes are stored at another version; existing objects stay as they are until "
        "rewritten",
        (STORED,),
    ),
    ReviewRule(
        "stored-version-removed",
        ERROR,
        "a version is gone in which objects are stored: the API server refuses the update, or "
        "the objects become unreadable",
        (STORED,),
    ),
)


def versions(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    for before in old.crd.versions:
        if new.crd.version(before.name) is None:
            yield from _removed(old, new, before.name)
    for after in new.crd.versions:
        if old.crd.version(after.name) is None:
            state = ", served" * after.served + ", stored" * after.storage
            yield FindingDraft(
                rule="version-added",
                version=after.name,
                pointer=new.version_pointer(after.name),
                message=f"{after.name} is new{state}",
            )
        else:
            yield from _flags(old, new, after.name)


def _removed(old: ReviewedCrd, new: ReviewedCrd, name: str) -> Iterator[FindingDraft]:
    version = old.crd.version(name)
    assert version is not None
    pointer = old.version_pointer(name)
    stored = name in old.crd.stored_versions
    if stored:
        known = (
            "status.storedVersions names it" if old.knows_status else "it was the storage version"
        )
        yield FindingDraft(
            rule="stored-version-removed",
            version=name,
            pointer=pointer,
            on_old=True,
            message=f"{name} is gone while objects may be stored in it ({known})",
            why_no_witness="it is the stored bytes that become unreadable",
        )
    if version.served:
        yield FindingDraft(
            rule="version-removed",
            version=name,
            pointer=pointer,
            on_old=True,
            message=f"{name} was served and is gone",
            probe=Probe(Effect.REFUSED, name),
        )
    else:
        unsure = "" if old.knows_status or stored else "; make sure nothing is stored in it"
        yield FindingDraft(
            rule="version-removed",
            severity=WARNING,
            hits=(STORED,),
            version=name,
            pointer=pointer,
            on_old=True,
            message=f"{name} is gone; it was not served any more{unsure}",
        )


def _flags(old: ReviewedCrd, new: ReviewedCrd, name: str) -> Iterator[FindingDraft]:
    before, after = old.crd.version(name), new.crd.version(name)
    assert before is not None
    assert after is not None
    pointer = new.version_pointer(name)
    if before.served and not after.served:
        yield FindingDraft(
            rule="version-unserved",
            version=name,
            pointer=(*pointer, "served"),
            message=f"{name} is no longer served",
            probe=Probe(Effect.REFUSED, name),
        )
    if after.served and not before.served:
        yield FindingDraft(
            rule="version-served",
            version=name,
            pointer=(*pointer, "served"),
            message=f"{name} is served now",
        )
    if after.deprecated and not before.deprecated:
        yield FindingDraft(
            rule="version-deprecated",
            version=name,
            pointer=(*pointer, "deprecated"),
            message=f"{name} is deprecated now",
        )
    elif before.deprecated and not after.deprecated:
        yield FindingDraft(
            rule="deprecation-changed",
            version=name,
            pointer=pointer,
            message=f"{name} is no longer deprecated",
        )
    elif before.deprecation_warning != after.deprecation_warning:
        yield FindingDraft(
            rule="deprecation-changed",
            version=name,
            pointer=(*pointer, "deprecationWarning"),
            message=f"the deprecation warning of {name} changed",
        )


def storage(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    before, after = old.crd.storage_version(), new.crd.storage_version()
    if before == after or not before or not after:
        return
    yield FindingDraft(
        rule="storage-version-changed",
        version=after,
        pointer=new.version_pointer(after, "storage"),
        message=f"stored at {after} from now on, was {before}; existing objects stay at {before} "
        "until each is rewritten",
        why_no_witness="no object changes by itself; the plan says how to rewrite them",
    )


CHECKS = (
    CrdCheck(
        (
            "versions[].name",
            "versions[].served",
            "versions[].deprecated",
            "versions[].deprecationWarning",
        ),
        versions,
    ),
    CrdCheck(("versions[].storage",), storage),
)
