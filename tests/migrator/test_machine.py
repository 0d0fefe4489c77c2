"""Everything at random: objects, namespaces, versions, webhooks, writers, kills and migrations.

Against an instar on etcd, behind the stand-in that behaves as kube-apiserver does, so that no
count of ours helps the migrator. The bytes in etcd are read directly: ``storedVersions`` may never
deny what lies there, and no run may call itself well that lost an owner.

``INSTAR_MACHINE_EXAMPLES`` and ``INSTAR_MACHINE_STEPS`` make it longer; a release is tried with
ten minutes of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from instar.base.json_values import Object
from instar.tools.migrator.outcomes import ObjectResult
from instar.tools.migrator.progress_file import ProgressFile
from instar.tools.migrator.report import MigrationReport
from instar.wire.client.paths import crd_path
from instar.wire.storage.open import StorageOptions, open_store
from tests.migrator.running import Silent, migrated
from tests.migrator.support import crd, edit_crd, group_of, name_of, objects_path
from tests.migrator.upstream import Upstream, upstream
from tests.storage.etcd_server import EtcdCluster
from tests.support.server import live_server
from tests.support.webhook import Webhook

EXAMPLES = int(os.environ.get("INSTAR_MACHINE_EXAMPLES", "6"))
STEPS = int(os.environ.get("INSTAR_MACHINE_STEPS", "14"))

VERSIONS = ("v1beta1", "v1")
NAMESPACES = ("default", "shaky")
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
names = st.sampled_from([f"w{number}" for number in range(5)])
namespaces = st.sampled_from(NAMESPACES)
versions = st.sampled_from(VERSIONS)
managers = st.sampled_from(["argocd", "flux", "kubectl"])
Owners = dict[str, set[tuple[str, str]]]


def renamed(obj: Object, wanted: str) -> Object:
    """v1beta1 calls ``host`` what v1 calls ``port``, so that owners have something to follow."""
    spec = dict(obj.get("spec") or {})
    old, new = ("host", "port") if wanted.endswith("/v1") else ("port", "host")
    if old in spec and obj["apiVersion"] != wanted:
        spec[new] = spec.pop(old)
    return {**obj, "apiVersion": wanted, "spec": spec}


class Cluster:
    """One etcd, one server, one stand-in for all examples; each example has a CRD of its own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        etcd = stack.enter_context(EtcdCluster(folder, members=1))
        self.storage = f"etcd://{etcd.members[0].address}/machine"
        server = stack.enter_context(live_server(storage=self.storage, conversion_cache=False))
        self.api: Upstream = stack.enter_context(upstream(server, folder))
        self.hook = stack.enter_context(Webhook())
        for name in NAMESPACES:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.api.request("POST", "/api/v1/namespaces", body)

    def bytes_of(self, group: str) -> dict[str, Object]:
        """Every object as it lies in etcd."""

        async def read() -> dict[str, Object]:
            store = await open_store(self.storage, StorageOptions())
            try:
                prefix = f"{group}/widgets/"
                page = await store.range(prefix)
                return {
                    record.key.removeprefix(prefix): json.loads(record.value)
                    for record in page.records
                }
            finally:
                await store.close()

        return asyncio.run(read())


class Killing(ProgressFile):
    """Dies when it is told something for the n-th time; what was not noted by then is lost."""

    def __init__(self, path: Path, after: int) -> None:
        super().__init__(path)
        self.left = after

    def finish_page(self, outcomes: Iterable[ObjectResult], token: str) -> None:
        self._tick()
        super().finish_page(outcomes, token)

    def correct(self, outcomes: Iterable[ObjectResult]) -> None:
        self._tick()
        super().correct(outcomes)

    def _tick(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


class Meanwhile(Silent):
    """Lets others act while the migration is at work."""

    def __init__(self, acts: list[tuple[int, Callable[[], None]]]) -> None:
        super().__init__()
        self.acts = sorted(acts, key=lambda item: item[0])

    def advance(self, count: int) -> None:
        super().advance(count)
        while self.acts and self.advanced >= self.acts[0][0]:
            self.acts.pop(0)[1]()


class Machine(RuleBasedStateMachine):
    cluster: Cluster

    @initialize(
        webhook=st.booleans(),
        objects=st.lists(st.tuples(namespaces, names, versions, managers), min_size=4, max_size=9),
        lost=st.booleans(),
    )
    def begin(self, webhook: bool, objects: list[tuple[str, str, str, str]], lost: bool) -> None:
        """Some objects, half of them in a shaky place, and a storage version that has moved."""
        self.folder = Path(tempfile.mkdtemp(prefix="instar-machine-"))
        hook = self.cluster.hook
        self.definition = crd(conversion=hook.conversion()) if webhook else crd()
        self.webhook = webhook
        self.cluster.hook.convert = renamed
        self.cluster.hook.fault = None
        self.api = self.cluster.api
        self.api.lost_namespaces.clear()
        self.api.wipes = lambda obj: False
        self.api.create_crd(self.definition)
        self.touched: set[str] = set()
        for namespace, name, version, manager in objects:
            self._write(namespace, name, version, manager, apply=True)
        self._move_storage("v1")
        self.lose_namespace(lost=lost)

    @rule(namespace=namespaces, name=names, version=versions, manager=managers, apply=st.booleans())
    def write(self, namespace: str, name: str, version: str, manager: str, apply: bool) -> None:
        self._write(namespace, name, version, manager, apply)

    @rule(namespace=namespaces, name=names)
    def delete(self, namespace: str, name: str) -> None:
        self._delete(namespace, name)

    @rule(version=versions)
    def move_storage(self, version: str) -> None:
        self._move_storage(version)

    @rule(lost=st.booleans())
    def lose_namespace(self, lost: bool) -> None:
        """Finalized by force: its objects list and cannot be written."""
        (self.api.lost_namespaces.add if lost else self.api.lost_namespaces.discard)("shaky")

    @rule(every=st.sampled_from([0, 1, 2, 3]))
    def forget_owners(self, every: int) -> None:
        """The server drops managedFields on every n-th write of the migrator."""
        seen = 0

        def wipes(obj: Object) -> bool:
            nonlocal seen
            seen += 1
            return bool(every) and seen % every == 0

        self.api.wipes = wipes

    @precondition(lambda self: self.webhook)
    @rule(every=st.sampled_from([0, 2, 5]))
    def break_webhook(self, every: int) -> None:
        asked = 0

        def convert(obj: Object, wanted: str) -> Object:
            nonlocal asked
            asked += 1
            if every and asked % every == 0:
                raise RuntimeError("out of luck")
            return renamed(obj, wanted)

        self.cluster.hook.convert = convert

    @rule(
        acts=st.lists(
            st.tuples(
                st.integers(0, 8),
                st.sampled_from(["write", "create", "delete", "move", "lose", "find"]),
                names,
                namespaces,
                versions,
            ),
            max_size=3,
        )
    )
    def migrate(self, acts: list[tuple[int, str, str, str, str]]) -> None:
        self._run(ProgressFile(self.folder / "progress"), acts)

    @rule(after=st.integers(0, 3))
    def migrate_and_be_killed(self, after: int) -> None:
        self._run(Killing(self.folder / "progress", after), [])

    @invariant()
    def stored_versions_deny_nothing(self) -> None:
        if not hasattr(self, "definition"):
            return
        current = self.api.request("GET", crd_path(name_of(self.definition))).json
        claimed = set(current["status"]["storedVersions"])
        lying = {
            key: obj["apiVersion"].rpartition("/")[2]
            for key, obj in self.cluster.bytes_of(group_of(self.definition)).items()
        }
        assert set(lying.values()) <= claimed, f"{claimed} is claimed, and there is {lying}"

    def teardown(self) -> None:
        """With everything well again, one run ends it all."""
        if not hasattr(self, "definition"):
            return
        self.api.lost_namespaces.clear()
        self.api.wipes = lambda obj: False
        self.cluster.hook.convert = renamed
        journal = ProgressFile(self.folder / "progress")
        for line in list(journal.troubled()):
            journal.forget(line.key)
        report = self._run(journal, [])
        assert report is not None
        assert report.ok, report.lines()
        storage = report.plan.live.storage
        for key, obj in self.cluster.bytes_of(group_of(self.definition)).items():
            assert obj["apiVersion"].endswith(f"/{storage}"), key
        self.api.request("DELETE", crd_path(name_of(self.definition)))
        shutil.rmtree(self.folder)

    def _run(
        self, journal: ProgressFile, acts: list[tuple[int, str, str, str, str]]
    ) -> MigrationReport | None:
        before = self._owners()
        self.touched = set()
        progress = Meanwhile([(at, self._act(*what)) for at, *what in acts])
        report = None
        try:
            report = migrated(
                self.api, self.definition, journal=journal, progress=progress, forced=True,
                page=3, concurrency=2, keep_going=True,
            )  # fmt: skip
        except KeyboardInterrupt:
            pass
        finally:
            journal.close(remove=report is not None and report.ok)
        if report is not None and report.ok:
            self._nobody_lost(before)
        return report

    def _nobody_lost(self, before: Owners) -> None:
        after = self._owners()
        for key, owners in before.items():
            if key in after and key not in self.touched:
                assert owners <= after[key], f"{key}: {owners - after[key]} own nothing any more"

    def _owners(self) -> Owners:
        found = self.cluster.bytes_of(group_of(self.definition))
        return {
            key: {
                (entry["manager"], entry["operation"])
                for entry in obj["metadata"].get("managedFields") or ()
            }
            for key, obj in found.items()
        }

    def _act(self, what: str, name: str, namespace: str, version: str) -> Callable[[], None]:
        def act() -> None:
            self.touched.add(f"{namespace}/{name}")
            match what:
                case "write" | "create":
                    self._write(namespace, name, version, "flux", what == "write")
                case "delete":
                    self._delete(namespace, name)
                case "move":
                    self._move_storage(version)
                case "lose":
                    self.api.lost_namespaces.add("shaky")
                case "find":
                    self.api.lost_namespaces.discard("shaky")

        return act

    def _write(self, namespace: str, name: str, version: str, manager: str, apply: bool) -> None:
        """Past the stand-in: clients of the server itself."""
        path = objects_path(self.definition, version, name, namespace)
        field = "host" if version == "v1beta1" else "port"
        body: Any = {"spec": {field: f"{name}-{manager}", "size": len(manager)}}
        if apply:
            body |= {
                "apiVersion": f"{group_of(self.definition)}/{version}",
                "kind": "Widget",
                "metadata": {"name": name},
            }
            self.api.request("PATCH", f"{path}?fieldManager={manager}&force=true", body,
                             content_type=APPLY)  # fmt: skip
            return
        answer = self.api.request("PATCH", f"{path}?fieldManager={manager}", body,
                                  content_type=MERGE)  # fmt: skip
        if answer.status == 404:
            head = {"apiVersion": f"{group_of(self.definition)}/{version}", "kind": "Widget"}
            obj = {**head, "metadata": {"name": name}, **body}
            self.api.request("POST", path.rpartition("/")[0], obj)

    def _delete(self, namespace: str, name: str) -> None:
        self.api.request("DELETE", objects_path(self.definition, "v1", name, namespace))

    def _move_storage(self, version: str) -> None:
        def change(current: Object) -> None:
            for item in current["spec"]["versions"]:
                item["storage"] = item["name"] == version

        edit_crd(self.api, self.definition, change)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path_factory.mktemp("machine"), stack)


def test_stored_versions_never_deny_the_bytes_and_no_owner_is_lost(cluster: Cluster) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    machine = type("ClusterMachine", (Machine,), {"cluster": cluster})
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    run_state_machine_as_test(machine, settings=chosen)
