"""Parses CRD test suites: the CRD that a suite tests, and its cases. The format is OpenShift's,
with additions.

Called by ``suite_files.py``; ``running.py`` runs the cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, Pointer
from instar.kube.api.encoding.manifests import (
    Document,
    UnreadableManifest,
    documents,
    only_document,
)

_KNOWN_KEYS = ("apiVersion", "kind", "name", "crdName", "crd", "version", "tests", "labels")
_IGNORED_KEYS = ("featureGate", "featureGates")
"""Keys by which OpenShift selects CRD files; here the caller selects the files."""


_MANAGER = "instar-test"


class Act(StrEnum):
    """The action of a case: create, update, apply or convert."""

    CREATE = "onCreate"
    UPDATE = "onUpdate"
    APPLY = "onApply"
    CONVERT = "onConvert"


_MEMBERS = {
    Act.CREATE: ("initial", "expected", "expectedError"),
    Act.UPDATE: (
        "initial",
        "initialCRDPatches",
        "updated",
        "expected",
        "expectedError",
        "expectedStatusError",
    ),
    Act.APPLY: ("initial", "applied", "manager", "force", "expected", "expectedError"),
    Act.CONVERT: ("initial", "version", "expected", "expectedError"),
}
_SECOND = {Act.UPDATE: "updated", Act.APPLY: "applied", Act.CONVERT: "version"}


class SuiteError(Exception):
    """An invalid suite; ``str()`` is one line with the place and the reason."""


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """One case of a suite."""

    act: Act
    name: str
    line: int
    initial: Object | None = None
    second: Object | None = None
    """The second object sent: an update, or an applied configuration."""
    version: str = ""
    crd_patches: tuple[Object, ...] = ()
    """JSON patch that gives the CRD under which the initial object was created."""
    manager: str = _MANAGER
    force: bool = False
    expected: Object | None = None
    expected_error: str = ""
    expected_status_error: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """A file of cases for one CRD."""

    file: str
    name: str
    crd_name: str = ""
    crd_file: str = ""
    """Relative to the suite's own file."""
    cases: tuple[SuiteCase, ...] = field(default=())
    notes: tuple[str, ...] = ()
    """What was ignored; other tools ignore it, too."""


def is_suite(value: Any) -> bool:
    """Return whether a document looks like a suite."""
    return isinstance(value, dict) and isinstance(value.get("tests"), dict) and _names_crd(value)


def _names_crd(value: Mapping[str, Any]) -> bool:
    return bool(value.get("crdName") or value.get("crd"))


def read_suites(text: str, file: str) -> list[Suite]:
    """Return every suite in a file. Raises ``SuiteError``."""
    try:
        found = list(documents(text, file))
    except UnreadableManifest as error:
        raise SuiteError(str(error)) from None
    return [_suite(document) for document in found if is_suite(document.value)]


def _suite(document: Document) -> Suite:
    value = document.value
    return Suite(
        file=document.file,
        name=str(value.get("name") or document.file),
        crd_name=str(value.get("crdName") or ""),
        crd_file=str(value.get("crd") or ""),
        cases=tuple(_cases(document)),
        notes=tuple(
            f"{document.file}:{document.find((name,))[0]}: a suite has no {name!r}; left aside"
            for name in value
            if name not in (*_KNOWN_KEYS, *_IGNORED_KEYS)
        ),
    )


def _cases(document: Document) -> Iterator[SuiteCase]:
    for name, listed in document.value["tests"].items():
        try:
            act = Act(name)
        except ValueError:
            known = ", ".join(Act)
            raise _wrong(document, ("tests", name), f"{name!r} is not one of {known}") from None
        if listed is None:
            continue
        if not isinstance(listed, list):
            raise _wrong(document, ("tests", name), "must be a list of cases")
        for position, item in enumerate(listed):
            yield _case(document, act, item, ("tests", name, position))


def _case(document: Document, act: Act, item: Any, where: Pointer) -> SuiteCase:
    if not isinstance(item, dict) or not item.get("name"):
        raise _wrong(document, where, "a case is an object with a name")
    for name in item:
        if name != "name" and name not in _MEMBERS[act]:
            allowed = ", ".join(_MEMBERS[act])
            raise _wrong(document, (*where, name), f"{act} has no {name!r}; it has {allowed}")
    second = _SECOND.get(act)
    if act is not Act.APPLY and not item.get("initial"):
        raise _wrong(document, where, "a case begins with an initial object")
    if second is not None and not item.get(second):
        raise _wrong(document, where, f"{act} needs {second!r}")
    patches = item.get("initialCRDPatches") or []
    if not isinstance(patches, list):
        raise _wrong(document, (*where, "initialCRDPatches"), "must be a list: a JSON patch")
    objects = {
        name: _object(document, item.get(name), (*where, name))
        for name in ("initial", "updated", "applied", "expected")
    }
    return SuiteCase(
        act=act,
        name=str(item["name"]),
        line=document.find(where)[0],
        initial=objects["initial"],
        second=objects["updated"] or objects["applied"],
        version=str(item.get("version") or ""),
        crd_patches=tuple(patches),
        manager=str(item.get("manager") or _MANAGER),
        force=bool(item.get("force")),
        expected=objects["expected"],
        expected_error=str(item.get("expectedError") or "").strip(),
        expected_status_error=str(item.get("expectedStatusError") or "").strip(),
    )


def _object(document: Document, given: Any, where: Pointer) -> Object | None:
    """Return an object given as YAML text or directly."""
    if given is None or given == "":
        return None
    value = given
    if isinstance(given, str):
        try:
            value = only_document(given, document.file)
        except UnreadableManifest as error:
            raise _wrong(document, where, f"not readable as YAML: {error.problem}") from None
    if not isinstance(value, dict):
        raise _wrong(document, where, "must be an object")
    return value


def _wrong(document: Document, where: Pointer, text: str) -> SuiteError:
    return SuiteError(f"{document.file}:{document.find(where)[0]}: {text}")
