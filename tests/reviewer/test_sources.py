"""Where CRDs come from, and what is said about those that cannot be read."""

from __future__ import annotations

import asyncio
import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from instar.base.json_values import Object
from instar.tools.reviewer.sources import LoadedCrds, ReviewedCluster, history, load_crds
from tests.reviewer.widget import widget
from tests.support.server import LiveServer, live_server


def load(source: object, cluster: ReviewedCluster | None = None) -> LoadedCrds:
    return asyncio.run(load_crds(str(source), cluster))


def named(name: str) -> Object:
    crd = widget()
    crd["metadata"]["name"] = f"{name}.example.com"
    crd["spec"]["names"] = {"plural": name, "kind": name.capitalize()}
    return crd


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    git("init", "-q", "-b", "main")
    git("config", "user.email", "a@example.com")
    git("config", "user.name", "a")
    return tmp_path


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, capture_output=True)


def commit(file: Path, crd: Object, title: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(crd))
    git("add", str(file))
    git("commit", "-q", "-m", title)


def test_file_of_several_documents_gives_every_crd_and_skips_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    file.write_text(yaml.safe_dump_all([named("apples"), other, None, named("pears")]))

    loaded = load(file)

    assert sorted(loaded.crds) == ["apples.example.com", "pears.example.com"]
    assert loaded.problems == []


def test_folder_is_read_to_its_depth_and_files_without_crds_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.yaml").write_text(yaml.safe_dump(named("apples")))
    (tmp_path / "b.json").write_text('{"kind": "Kustomization"}')
    (tmp_path / "notes.txt").write_text("not: [yaml")

    loaded = load(tmp_path)

    assert list(loaded.crds) == ["apples.example.com"]
    assert loaded.problems == []


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(yaml.safe_dump(named("apples"))))

    assert list(load("-").crds) == ["apples.example.com"]


def test_list_of_crds_is_taken_apart(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    items = [named("apples"), named("pears")]
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))

    assert len(load(file).crds) == 2


def test_broken_yaml_names_file_and_line_and_others_are_still_read(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("kind: X\nspec: [1,\n  2\nmore: }\n")
    (tmp_path / "good.yaml").write_text(yaml.safe_dump(named("apples")))

    loaded = load(tmp_path)

    assert list(loaded.crds) == ["apples.example.com"]
    [problem] = loaded.problems
    assert problem.file.endswith("bad.yaml")
    assert problem.line == 4


def test_other_kind_is_called_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("\n\napiVersion: v1\nkind: Pod\n")

    [problem] = load(file).problems

    assert str(problem) == f"{file}:3: not a CRD but a Pod"


def test_two_crds_of_one_name_are_both_left_out(tmp_path: Path) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text(yaml.safe_dump_all([named("apples"), named("pears"), named("apples")]))

    loaded = load(file)

    assert list(loaded.crds) == ["pears.example.com"]
    [problem] = loaded.problems
    assert "apples.example.com is here a second time; first at" in str(problem)


@pytest.mark.parametrize("part", ["names", "versions"])
def test_crd_without_its_parts_is_a_problem_and_no_crash(tmp_path: Path, part: str) -> None:
    crd = named("apples")
    del crd["spec"][part]
    file = tmp_path / "crd.yaml"
    file.write_text(yaml.safe_dump(crd))

    [problem] = load(file).problems

    assert "not a usable CRD" in problem.message


def test_missing_file_is_a_problem(tmp_path: Path) -> None:
    [problem] = load(tmp_path / "none.yaml").problems

    assert "No such file" in str(problem)


def test_git_revision_of_a_file_with_slashes_in_branch_and_path(repo: Path) -> None:
    file = repo / "config" / "crd" / "a.yaml"
    commit(file, named("apples"), "first")
    git("branch", "feature/x")
    commit(file, named("pears"), "second")

    assert list(load("git:feature/x:config/crd/a.yaml").crds) == ["apples.example.com"]
    assert list(load("git:HEAD:config/crd/a.yaml").crds) == ["pears.example.com"]


def test_git_revision_of_a_folder(repo: Path) -> None:
    commit(repo / "crd" / "a.yaml", named("apples"), "first")
    commit(repo / "crd" / "deep" / "b.yaml", named("pears"), "second")

    assert len(load("git:HEAD:crd").crds) == 2
    assert len(load("git:HEAD:").crds) == 2
    assert len(load("git:HEAD~1:crd").crds) == 1


def test_git_path_may_start_at_the_top_or_at_the_working_directory(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repo / "crd" / "a.yaml", named("apples"), "first")
    monkeypatch.chdir(repo / "crd")

    assert load("git:HEAD:a.yaml").crds.keys() == load("git:HEAD:crd/a.yaml").crds.keys()
    assert len(load("git:HEAD:a.yaml").crds) == 1


def test_git_source_in_the_form_of_crdify(repo: Path) -> None:
    commit(repo / "a.yaml", named("apples"), "first")

    assert list(load("git://main?path=a.yaml").crds) == ["apples.example.com"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("git:nowhere:a.yaml", "there is no revision 'nowhere'"),
        ("git:HEAD:none.yaml", "none.yaml does not exist at HEAD"),
        ("git:HEAD", "write git:REF:PATH"),
    ],
)
def test_unreadable_git_source_is_a_problem(repo: Path, source: str, said: str) -> None:
    commit(repo / "a.yaml", named("apples"), "first")

    [problem] = load(source).problems

    assert said in str(problem)


def test_history_follows_a_rename(repo: Path) -> None:
    commit(repo / "a.yaml", named("apples"), "first")
    git("mv", "a.yaml", "b.yaml")
    git("commit", "-q", "-m", "second")

    commits, problem = history("b.yaml")

    assert problem is None
    assert [Path(item.path).name for item in commits] == ["a.yaml", "b.yaml"]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        running.create_crd(widget())
        yield running


def test_cluster_gives_one_or_all_crds(server: LiveServer) -> None:
    cluster = ReviewedCluster(str(server.kubeconfig))

    one, every = load("kube:widgets.example.com", cluster), load("kube:", cluster)

    assert list(one.crds) == list(every.crds) == ["widgets.example.com"]
    assert one.crds["widgets.example.com"].value["status"]["storedVersions"] == ["v1"]


def test_unknown_crd_and_unknown_context_of_a_cluster_are_problems(server: LiveServer) -> None:
    cluster = ReviewedCluster(str(server.kubeconfig))

    [missing] = load("kube:none.example.com", cluster).problems
    [context] = load("kube:?context=nowhere", cluster).problems

    assert "there is no such CRD" in str(missing)
    assert "nowhere" in str(context)


def test_unreachable_cluster_is_a_problem(tmp_path: Path) -> None:
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(config))

    [problem] = load("kube:", ReviewedCluster(str(file))).problems

    assert problem.file == "kube:"
