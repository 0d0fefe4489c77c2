"""``instar upgrade`` beside another client that changes the CRD: what that client did is neither
overwritten by the release nor by a roll back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from instar.base.json_values import Object
from instar.wire.client.paths import crd_path
from tests.migrator.running import instar
from tests.migrator.support import (
    crd,
    edit_crd,
    fill,
    name_of,
    objects_path,
    schema,
    stored_versions,
    with_legacy,
)
from tests.migrator.upstream import Upstream, upstream
from tests.support.server import LiveServer
from tests.support.webhook import Webhook, relabel

MERGE = "application/merge-patch+json"


@pytest.fixture
def cluster(server: LiveServer, tmp_path: Path) -> Iterator[Upstream]:
    with upstream(server, tmp_path) as proxy:
        yield proxy


def _only(definition: Object, *names: str, storage: str) -> Object:
    found: Object = json.loads(json.dumps(definition))
    models = {item["name"]: item for item in found["spec"]["versions"]}
    found["spec"]["versions"] = [
        {**models[name], "served": True, "storage": name == storage} for name in names
    ]
    return found


def _release(folder: Path, definition: Object, *names: str, storage: str) -> str:
    path = folder / "release.yaml"
    path.write_text(yaml.safe_dump(_only(definition, *names, storage=storage)))
    return str(path)


def _before(
    cluster: Upstream, when: Callable[[str, str, bool], bool], act: Callable[[], None]
) -> None:
    """Act once, when a write of the tool passes."""
    acted: list[str] = []

    def passing(method: str, path: str, answered: bool) -> bool:
        if not acted and when(method, path, answered):
            acted.append(path)
            act()
        return False

    cluster.passing = passing


def _add_field(cluster: Upstream, definition: Object, name: str) -> None:
    """Another client adds a field to v1beta1, and sets it in an object."""

    def change(current: Object) -> None:
        for item in current["spec"]["versions"]:
            spec = item["schema"]["openAPIV3Schema"]["properties"]["spec"]
            spec["properties"][name] = {"type": "string"}

    edit_crd(cluster, definition, change)
    path = objects_path(definition, "v1beta1", "w00001")
    answer = cluster.request("PATCH", path, {"spec": {name: "kept"}}, content_type=MERGE)
    assert answer.json["spec"][name] == "kept"


def _shows(cluster: Upstream, definition: Object, name: str) -> bool:
    return (
        name in cluster.request("GET", objects_path(definition, "v1beta1", "w00001")).json["spec"]
    )


def test_a_crd_that_changed_since_its_review_is_not_overwritten(
    cluster: Upstream, tmp_path: Path
) -> None:
    definition = crd()
    cluster.create_crd(_only(definition, "v1beta1", storage="v1beta1"))
    fill(cluster, definition, 3)
    release = _release(tmp_path, definition, "v1beta1", "v1", storage="v1")
    of_crd = crd_path(name_of(definition))
    _before(
        cluster,
        lambda method, path, answered: path == of_crd and not answered,
        lambda: _add_field(cluster, definition, "extra"),
    )

    done = instar(cluster, "upgrade", release, "--settle", "0")

    assert done.returncode == 1
    assert "another client changed the CRD since it was read" in done.stdout
    assert "Traceback" not in done.stderr
    assert _shows(cluster, definition, "extra")


def test_a_crd_that_another_client_created_since_is_not_overwritten(
    cluster: Upstream, tmp_path: Path
) -> None:
    definition = crd(schema=schema("extra"))
    release = _release(tmp_path, crd() | {"metadata": definition["metadata"]}, "v1", storage="v1")
    given = json.loads(json.dumps(definition))
    document = yaml.safe_load(Path(release).read_text())
    document["spec"]["group"] = definition["spec"]["group"]
    Path(release).write_text(yaml.safe_dump(document))
    asked: list[str] = []

    def create(method: str, path: str, body: object) -> None:
        """Between the dry run and the apply."""
        read_again = method == "GET" and path == crd_path(name_of(definition)) and any(asked)
        if read_again and asked.count("PATCH") == 1 and "created" not in asked:
            asked.append("created")
            cluster.create_crd(given)
        asked.append(method)

    cluster.meddle = create
    done = instar(cluster, "upgrade", release, "--settle", "0")

    assert done.returncode == 1, done.stdout
    assert "another client has created the CRD since it was reviewed" in done.stdout
    found = cluster.request("GET", crd_path(name_of(definition))).json
    assert [item["name"] for item in found["spec"]["versions"]] == ["v1beta1", "v1"]


def test_a_status_written_meanwhile_does_not_stop_an_upgrade(
    cluster: Upstream, tmp_path: Path
) -> None:
    definition = crd()
    cluster.create_crd(_only(definition, "v1beta1", storage="v1beta1"))
    fill(cluster, definition, 3)
    release = _release(tmp_path, definition, "v1beta1", "v1", storage="v1")
    of_crd = crd_path(name_of(definition))

    def condition() -> None:
        one = {"type": "Seen", "status": "True", "reason": "Seen", "message": ""}
        patch = [{"op": "add", "path": "/status/conditions/-", "value": one}]
        kind = "application/json-patch+json"
        answer = cluster.request("PATCH", f"{of_crd}/status", patch, content_type=kind)
        assert answer.status == 200, answer.text

    _before(cluster, lambda method, path, answered: path == of_crd and not answered, condition)

    done = instar(cluster, "upgrade", release, "--settle", "0")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified, storedVersions trimmed" in done.stdout


def test_a_roll_back_leaves_a_crd_alone_that_another_client_changed(
    cluster: Upstream, tmp_path: Path
) -> None:
    definition = crd()
    cluster.create_crd(_only(definition, "v1beta1", storage="v1beta1"))
    fill(cluster, definition, 3)
    changed = json.loads(json.dumps(definition))
    (new,) = [item for item in changed["spec"]["versions"] if item["name"] == "v1"]
    rule = "self.size != 2 || (oldSelf.hasValue() && false)"
    spec = new["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [{"rule": rule, "optionalOldSelf": True}]
    release = _release(tmp_path, changed, "v1beta1", "v1", storage="v1")
    collection = objects_path(definition, "v1")
    _before(
        cluster,
        lambda method, path, answered: path.startswith(collection) and answered,
        lambda: _add_field(cluster, definition, "extra"),
    )

    done = instar(cluster, "upgrade", release, "--fail-on", "none", "--settle", "0")

    assert done.returncode == 1, done.stdout
    assert "roll back: failed: another client has changed the CRD since" in done.stdout
    assert _shows(cluster, definition, "extra")


def _narrowing_release(cluster: Upstream, folder: Path, *, served: bool) -> tuple[Object, str]:
    """v1beta1 with ``spec.legacy`` on the cluster; a release stores v1, and its v1beta1 has that
    field no longer or is not served."""
    definition = crd(schemas={"v1beta1": schema("legacy"), "v1": schema()})
    cluster.create_crd(_only(definition, "v1beta1", storage="v1beta1"))
    fill(cluster, definition, 30)
    release = _only(definition, "v1beta1", "v1", storage="v1")
    old, new = release["spec"]["versions"]
    old["schema"] = old["schema"] if not served else new["schema"]
    old["served"] = served
    path = folder / "release.yaml"
    path.write_text(yaml.safe_dump(release))
    return definition, str(path)


def _set_legacy(cluster: Upstream, definition: Object) -> None:
    path = objects_path(definition, "v1beta1", "w00025")
    answer = cluster.request("PATCH", path, {"spec": {"legacy": "kept"}}, content_type=MERGE)
    assert answer.json["spec"]["legacy"] == "kept"


@pytest.mark.parametrize("served", [True, False])
def test_a_field_set_between_the_look_and_the_apply_is_not_lost(
    cluster: Upstream, tmp_path: Path, *, served: bool
) -> None:
    definition, release = _narrowing_release(cluster, tmp_path, served=served)
    of_crd = crd_path(name_of(definition))
    _before(
        cluster,
        lambda method, path, answered: path == of_crd and not answered,
        lambda: _set_legacy(cluster, definition),
    )

    done = instar(cluster, "upgrade", release, "--fail-on", "none", "--settle", "0")

    assert done.returncode == 1, done.stdout
    assert "default/w00025: " in done.stdout
    assert "spec.legacy" in done.stdout
    assert "roll back: taken back" in done.stdout
    assert with_legacy(cluster, definition) == 1


@pytest.mark.parametrize("served", [True, False])
def test_a_version_loses_its_field_or_its_place_after_the_rewrite(
    cluster: Upstream, tmp_path: Path, *, served: bool
) -> None:
    definition, release = _narrowing_release(cluster, tmp_path, served=served)

    done = instar(cluster, "upgrade", release, "--fail-on", "none", "--settle", "0")

    assert done.returncode == 0, done.stdout
    assert "narrow versions: done: v1beta1" in done.stdout
    found = cluster.request("GET", crd_path(name_of(definition))).json
    old, new = found["spec"]["versions"]
    assert (old["served"], new["storage"]) == (served, True)
    fields = old["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert ("legacy" in fields) is not served
    assert stored_versions(cluster, definition) == ["v1"]


def test_a_field_that_a_release_and_its_webhook_drop_is_found_before_a_rewrite(
    cluster: Upstream, tmp_path: Path
) -> None:
    with Webhook() as hook:
        hook.convert = relabel
        definition, release = _narrowing_release(cluster, tmp_path, served=True)
        document = yaml.safe_load(Path(release).read_text())
        document["spec"]["conversion"] = hook.conversion()
        Path(release).write_text(yaml.safe_dump(document))
        _set_legacy(cluster, definition)

        done = instar(cluster, "upgrade", release, "--fail-on", "none", "--settle", "0")

        assert done.returncode == 1, done.stdout
        assert "spec.legacy" in done.stdout
        assert "roll back: taken back" in done.stdout
        assert with_legacy(cluster, definition) == 1
