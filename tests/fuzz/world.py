"""A server to be hurt, with the material in it, and how it is seen that it was.

The log is read as it grows; memory is looked at after everything was put back.
"""

from __future__ import annotations

import re
import subprocess
import uuid
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case
from tests.fuzz.hooks import COLLECTIONS, HOOKED, HookServer
from tests.fuzz.material import CRDS, Material
from tests.fuzz.placeholders import Known
from tests.fuzz.strangers import USER, seed
from tests.fuzz.wire import Outcome
from tests.robust.victim import Victim
from tests.support.waiting import eventually

HISTORY_SECONDS = "5"
AUDIT_LOG = "audit.log"
_STRANGER_TOKEN = "fuzz-stranger-token"
_COMPLAINTS = re.compile(r"Traceback|never awaited|the event loop was held|exception was never")
_OURS = re.compile(r'File ".*?/(instar/[^"]+)", line \d+, in (\w+)')
_ERROR = re.compile(r"^(\w[\w.]*(?:Error|Exception|Exit|Interrupt|Failure)\b[^\n]{0,200})", re.M)
_HELD = re.compile(r"held for [0-9.]+ s by (.*)")

UPSTREAM: dict[bytes, str] = {
    b"conversion webhook for ": "nobody answers at the webhook a CRD was made to name",
    b'{"reason":"CustomResourceDefinition"': "a converter that answers wrongly",
    b"error resolving resource": "a CRD whose serving cannot be built",
    b"request to convert CR ": "an entry of managedFields names a version that is gone",
    b"admission webhook ": "a webhook that changes what it may not",
    b"failed calling webhook": "nobody answers at an admission webhook",
    b"failed to create typed patch object": "an applied configuration that does not fit",
    b"failed to decode managed fields": "stored managedFields that cannot be read",
    b"resourceVersion should not be set on objects to be created": "a bare Go error",
    b"resourceVersion: Invalid value": "a bare Go error of get and watch",
    b"strconv.ParseUint: parsing": "a bare Go error of updates",
    b"content is not a list": "a list was asked for in a form that one object has",
    b"the spec replicas field": "a Scale of an object without replicas",
    b"accessor error: ": "a Scale of an object whose fields have another type",
    b"value cannot be set because": "the same, written",
    b"error dialing backend": "there is no kubelet",
    b"no preferred addresses found": "a Node without an address: a bare Go error",
    b"more than one PodDisruptionBudget": "an eviction that nobody may decide",
    b"unsupported role reference kind": "a bare Go error",
    b"target.name: Required value": "a Binding without a node: a bare Go error",
    **dict.fromkeys(
        (
            b"list element types are not identical",
            b", but received a ",
            b"no elements in any of the given slices",
            b"merging lists cannot yet be specified in the patch",
            b"doesn't match $setElementOrder list",
            b"unknown patch type: ",
            b"does not contain declared merge key: ",
            b"cannot merge lists without merge key for struct",
            b"merging an object in json but data type is not struct",
            b"unable to find api field in struct ",
            b"expected slice or array type, but got: struct",
        ),
        "a strategic patch that does not fit: bare Go errors",
    ),
    b"range is full": "no address is left",
    b"etcdserver: request is too large": "as etcd says it",
    b"z check failed": "health tells",
}
"""Bodies of a 500 that kube-apiserver sends too: its words, and why they are no find."""


SEE_LOG = "see the server's log"
"""Said to a client where the log has a traceback, which says more."""


class World:
    """One server process. ``restore`` puts everything back as it was."""

    def __init__(self, folder: Path, material: Material, *arguments: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        tokens = folder / "tokens.csv"
        tokens.write_text(f"{_STRANGER_TOKEN},{USER},{USER}\n")
        told = ("--history", HISTORY_SECONDS, "--token-auth-file", str(tokens), *arguments)
        self._hooks = HookServer()
        self.victim = Victim(folder, *told)
        self.known = Known(
            self.victim.token.encode(),
            _STRANGER_TOKEN.encode(),
            self._hooks.port,
            self._hooks.authority,
        )
        self._audit = folder / AUDIT_LOG if "--audit-log-path" in arguments else None
        self._material = material
        self._read_until = 0
        self.restore()

    @property
    def alive(self) -> bool:
        return self.victim.process.poll() is None

    def stop(self) -> None:
        if self.alive:
            self.victim.process.terminate()  # workers end with it
            try:
                self.victim.process.wait(20)
            except subprocess.TimeoutExpired:
                self.victim.process.kill()
        self.victim.process.wait()
        self._hooks.stop()
        if self.victim.process.stdout is not None:
            self.victim.process.stdout.close()

    def restore(self) -> None:
        ask = self.victim.request
        for collection in COLLECTIONS:
            ask("DELETE", collection)
        for crd in ask("GET", CRDS).json["items"]:
            name = crd["metadata"]["name"]
            ask("PATCH", f"{CRDS}/{name}", {"metadata": {"finalizers": None}}, content_type=_MERGE)
            ask("DELETE", f"{CRDS}/{name}")
        for path in sorted({resource.path for resource in self._material.resources}):
            if "/namespaces/" in path and ask("GET", f"{path}?limit=1").status == 200:
                self._emptied(path)
        for crd in self._material.crds:
            answer = ask("POST", CRDS, crd)
            assert answer.status in (201, 409), answer.text[:500]
        ask("POST", "/api/v1/namespaces", {"metadata": {"name": HOOKED}})
        for resource in self._material.resources:
            ask("POST", resource.path, resource.sample)
        seed(ask)

    def _emptied(self, path: str) -> None:
        ask = self.victim.request
        ask("DELETE", path + "?gracePeriodSeconds=0&propagationPolicy=Background")
        left: Any = ask("GET", path).json.get("items") or ()
        for item in left:
            where = f"{path}/{item['metadata']['name']}"
            ask("PATCH", where, {"metadata": {"finalizers": None}}, content_type=_MERGE)
            ask("DELETE", f"{where}?gracePeriodSeconds=0")

    def ailment(self) -> str:
        """What is wrong with the server although nothing is asked of it."""
        ask = self.victim.request
        ready = ask("GET", "/readyz?verbose")
        if ready.status != 200:
            failed = re.findall(r"^\[-\](\S+) failed", ready.text, re.MULTILINE)
            reasons = (f"{name}: {ask('GET', f'/readyz/{name}').text.strip()}" for name in failed)
            return f"readyz: {'; '.join(reasons)[:300]}"
        for line in ask("GET", "/metrics").text.splitlines():
            if line.startswith("instar_background_failures_total{"):
                return f"background: {line}"
        return self._unaudited() if self._audit is not None else ""

    def _unaudited(self) -> str:
        mark = str(uuid.uuid4())
        self.victim.request("GET", "/version", headers={"Audit-ID": mark})

        def told() -> bool:
            assert self._audit is not None
            return any(mark in path.read_text() for path in self._audit.parent.glob("audit*.log"))

        try:
            eventually(told)
        except AssertionError:
            return "audit: a request is not in the log"
        return ""

    def complaint(self) -> str:
        """What the log said since it was asked last, if it is bad: by its place, not its time."""
        with open(self.victim.log, "rb") as log:
            log.seek(self._read_until)
            told = log.read().decode(errors="replace")
            self._read_until = log.tell()
        if not _COMPLAINTS.search(told):
            return ""
        held = _HELD.search(told)
        if held:
            return f"held: {held[1]}"
        frames, errors = _OURS.findall(told), _ERROR.findall(told)
        place = f"{frames[-1][0]}:{frames[-1][1]}" if frames else "somewhere"
        return f"traceback: {errors[-1][:200] if errors else told[-300:]} in {place}"


_MERGE = "application/merge-patch+json"


def trouble_of(case: Case, outcome: Outcome) -> str:
    """Why an answer is a find; empty where it is none."""
    hooked = HOOKED.encode() in case.data.partition(b"\r\n")[0]
    if outcome.leaked:
        return "leak: a user was shown what the user may not read"
    if outcome.silent:
        return "silent: no answer came"
    for reply in outcome.replies:
        if reply.status != 500 or not reply.body or any(text in reply.body for text in UPSTREAM):
            continue
        if not hooked or SEE_LOG.encode() in reply.body:  # a wrong webhook is a 500 by right
            return f"500: {reply.body[:300].decode(errors='replace')}"
    return ""
