"""Loads CRDs and objects from files, folders, standard input, git revisions and clusters.

Called by every command that takes CRDs (``review``, ``upgrade``, ``rehearse``, ``validate``,
``test``, ``types``, ``snapshot``). This is the only module of the reviewer that reads files and
clusters. A source that cannot be read becomes a ``Problem``; the rest is still reviewed.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

from instar.base.errors import ApiError, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.text_files import read_text
from instar.kube.api.crd import GROUP, PLURAL, is_crd
from instar.kube.api.encoding.manifests import Document, UnreadableManifest, only_document
from instar.tools.manifest_files import STDIN, Unopenable, files_of, is_excluded, text_of
from instar.tools.reviewer.admission.configurations import GROUP as ADMISSION
from instar.tools.reviewer.admission.configurations import PLURALS as ADMISSION_KINDS
from instar.tools.reviewer.config import FILES, Config, ConfigError, parse, read_baseline, section
from instar.tools.reviewer.documents import crd_name, crd_problem, documents
from instar.tools.reviewer.git import Commit, GitError, commits_of, texts_at
from instar.tools.reviewer.report import Problem
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import Access, KubeconfigError, load_access

_PAGE = 500


class ReviewedCluster(NamedTuple):
    """The cluster that ``kube:`` refers to, unless the source names a context."""

    kubeconfig: str | Path | None = None
    context: str | None = None
    qps: float = 0

    def access(self, context: str | None = None) -> Access:
        """Return the access of this cluster, or of another context. Raises ``KubeconfigError``."""
        return load_access(self.kubeconfig, context or self.context, qps=self.qps)


@dataclass
class LoadedCrds:
    """CRDs of one side by name."""

    crds: dict[str, Document] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


@dataclass
class LoadedObjects:
    """Custom resources of any kind."""

    objects: list[Object] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


async def load_crds(
    source: str, cluster: ReviewedCluster | None = None, exclude: Sequence[str] = ()
) -> LoadedCrds:
    """Load the CRDs of a path, ``-``, ``git:REF:PATH``, ``kube:``, ``kube:NAME[?context=…]``;
    in a folder, without the files that match ``exclude``.
    """
    found = await _load(source, cluster or ReviewedCluster(), exclude)
    return _crds(source, found)


def crds_in_text(text: str, name: str) -> LoadedCrds:
    """Return the CRDs of a text."""
    return _crds(name, _parsed([(name, text)]))


def whole_cluster(source: str) -> bool:
    """Return whether the source is ``kube:`` without a name: every CRD of the cluster."""
    scheme, _, rest = source.partition(":")
    return scheme == "kube" and not rest.removeprefix("//").partition("?")[0]


async def load_objects(source: str, cluster: ReviewedCluster | None = None) -> LoadedObjects:
    """Load custom resources of a file or folder."""
    found = await _load(source, cluster or ReviewedCluster())
    values = [item.value for item in found.documents]
    objects = [value for value in values if isinstance(value, dict) and not is_crd(value)]
    return LoadedObjects(objects, found.problems)


async def load_admission(source: str, cluster: ReviewedCluster) -> _Read:
    """Load webhook configurations, policies and bindings of ``kube:`` or of a path."""
    if not source.startswith("kube:"):
        return await _load(source, cluster)
    try:
        async with Client(cluster.access()) as client:
            found = [item async for item in _configurations(client)]
    except (ApiError, KubeconfigError, OSError) as error:
        return _Read([], [Problem(" ".join(str(error).split()), source)])
    return _Read([Document(item, source) for item in found], [])


async def _configurations(client: Client) -> AsyncIterator[Object]:
    """Return the configurations of a cluster; one that is too old for policies has none."""
    head = {"apiVersion": f"{ADMISSION}/v1"}
    for kind, plural in ADMISSION_KINDS.items():
        with suppress(NotFound):
            async for page in client.pages(f"/apis/{ADMISSION}/v1/{plural}", limit=_PAGE):
                for item in page.get("items") or ():
                    yield {**item, **head, "kind": kind}


class _Read(NamedTuple):
    documents: list[Document]
    problems: list[Problem]


async def _load(source: str, cluster: ReviewedCluster, exclude: Sequence[str] = ()) -> _Read:
    scheme, _, rest = source.partition(":")
    if scheme == "kube":
        return await _from_cluster(rest.removeprefix("//"), cluster)
    if scheme == "git":
        return await asyncio.to_thread(_from_git, rest, exclude)
    if scheme == "file":
        source = rest.removeprefix("//")
    return await asyncio.to_thread(_from_path, source, exclude)


def _crds(source: str, found: _Read) -> LoadedCrds:
    loaded = LoadedCrds(problems=list(found.problems))
    seen = 0
    twice: set[str] = set()
    for item in found.documents:
        if not is_crd(item.value):
            continue
        seen += 1
        problem = crd_problem(item)
        name = crd_name(item.value)
        if problem is None and name in loaded.crds and _other_form(loaded.crds[name], item):
            # releases for old and new clusters lie side by side; v1 is what counts
            loaded.crds[name] = max(loaded.crds[name], item, key=_is_v1)
            continue
        if problem is None and name in loaded.crds:
            first = loaded.crds[name]
            text = f"{name} is here a second time; first at {first.file}:{first.line}"
            problem = Problem(text, item.file, item.line)
            twice.add(name)
        if problem is not None:
            loaded.problems.append(problem)
        else:
            loaded.crds[name] = item
    for name in twice:
        # two CRDs of one name: unclear which is meant, so neither is reviewed
        del loaded.crds[name]
    if not seen and not found.problems:
        loaded.problems.append(_not_a_crd(source, found.documents))
    return loaded


def _is_v1(item: Document) -> bool:
    return str(item.value.get("apiVersion", "")).endswith("/v1")


def _other_form(one: Document, other: Document) -> bool:
    """Return whether two documents are the v1 and the v1beta1 form of one CRD."""
    return bool(one.value.get("apiVersion") != other.value.get("apiVersion"))


def _not_a_crd(source: str, found: list[Document]) -> Problem:
    if not found:
        return Problem("no CRD in there", source)
    value, line = found[0].value, found[0].line
    kind = value.get("kind") if isinstance(value, dict) else None
    return Problem(f"not a CRD but a {kind}" if kind else "not a CRD", source, line)


def _from_path(source: str, exclude: Sequence[str]) -> _Read:
    """Read each file separately, so that an unreadable file does not hide the others."""
    try:
        files = [source] if source == STDIN else [str(file) for file in files_of(source, exclude)]
    except Unopenable as error:
        return _Read([], [Problem(error.problem, error.file)])
    found, problems = [], []
    for file in files:
        try:
            name = "<stdin>" if file == STDIN else file
            some = _parsed([(name, text_of(file))])
        except Unopenable as error:
            some = _Read([], [Problem(error.problem, error.file)])
        found += some.documents
        problems += some.problems
    return _Read(found, problems)


def _parsed(texts: Iterable[tuple[str, str]]) -> _Read:
    found, problems = [], []
    for file, text in texts:
        some, bad = documents(text, file)
        found += some
        problems += bad
    return _Read(found, problems)


def _from_git(rest: str, exclude: Sequence[str]) -> _Read:
    """Load ``REF:PATH`` or ``//REF?path=PATH``; a reference may hold slashes but no colon.
    ``REF...`` means the merge base with the checked-out branch.
    """
    if rest.startswith("//") and "?path=" in rest:
        reference, _, path = rest[2:].partition("?path=")
        path = unquote(path)
    else:
        reference, colon, path = rest.partition(":")
        if not colon:
            return _Read([], [Problem("write git:REF:PATH", f"git:{rest}")])
    shown = f"git:{reference}:{path}"
    try:
        texts = texts_at(reference, path)
        return _parsed(each for each in texts if not is_excluded(each[0], exclude))
    except GitError as error:
        return _Read([], [Problem(str(error), shown)])


def history(path: str) -> tuple[list[Commit], Problem | None]:
    """Return the commits that touched a file, oldest first, following renames."""
    try:
        commits = commits_of(path)
    except GitError as error:
        return [], Problem(str(error), path)
    return commits, None if commits else Problem("git knows no commit of it", path)


async def _from_cluster(rest: str, cluster: ReviewedCluster) -> _Read:
    name, _, query = rest.partition("?")
    named = parse_qs(query).get("context")
    context = named[0] if named else cluster.context
    shown = f"kube:{name}" + (f"?context={context}" if context else "")
    try:
        async with Client(cluster.access(context)) as client:
            found = await _fetch(client, name)
    except NotFound:
        return _Read([], [Problem("there is no such CRD in the cluster", shown)])
    except (ApiError, KubeconfigError, OSError) as error:
        return _Read([], [Problem(" ".join(str(error).split()), shown)])
    return _Read([Document(item, shown) for item in found], [])


async def _fetch(client: Client, name: str) -> list[dict[str, Any]]:
    """Fetch a CRD as v1, or as v1beta1 from clusters that are too old for v1."""
    versions = ["v1", "v1beta1"]
    for version in versions:
        path = f"/apis/{GROUP}/{version}/{PLURAL}"
        head = {"apiVersion": f"{GROUP}/{version}", "kind": "CustomResourceDefinition"}
        try:
            if name:
                return [await client.get(f"{path}/{name}")]
            return [
                {**item, **head}
                async for page in client.pages(path, limit=_PAGE)
                for item in page.get("items") or ()
            ]
        except NotFound:
            if version == versions[-1]:
                raise
    return []


async def load_live_objects(crd: Object, cluster: ReviewedCluster) -> LoadedObjects:
    """Load every object of one CRD at the version it is most likely stored in."""
    spec = crd.get("spec") or {}
    served = [item for item in spec.get("versions") or () if item.get("served")]
    version = next((item for item in served if item.get("storage")), served[0] if served else {})
    plural = (spec.get("names") or {}).get("plural", "")
    path = f"/apis/{spec.get('group')}/{version.get('name')}/{plural}"
    loaded = LoadedObjects()
    try:
        async with Client(cluster.access()) as client:
            async for page in client.pages(path, limit=_PAGE):
                for item in page.get("items") or ():
                    kind = (spec.get("names") or {}).get("kind")
                    whole = {"apiVersion": page.get("apiVersion"), "kind": kind, **item}
                    loaded.objects.append(whole)
    except (ApiError, KubeconfigError, OSError) as error:
        loaded.problems.append(Problem(" ".join(str(error).split()), f"kube:{crd_name(crd)}"))
    return loaded


def load_config(path: str | None) -> Config:
    """Load the given configuration, or the nearest one above the working directory that has a
    review section.
    """
    if path is not None:
        found = _read_config(Path(path))
        if found is None:
            raise ConfigError(f"{path}: it has no review section")
        return found
    for folder in (Path.cwd(), *Path.cwd().parents):
        for name in FILES:
            found = _read_config(folder / name) if (folder / name).is_file() else None
            if found is not None:
                return found
    return Config()


def _read_config(path: Path) -> Config | None:
    try:
        if path.suffix == ".toml":
            settings = tomllib.loads(read_text(path))
        else:
            settings = only_document(read_text(path), str(path)) or {}
        if not isinstance(settings, dict):
            raise ConfigError("not a configuration: its top is no mapping")
        raw = section(path.name, settings)
        return None if raw is None else parse(raw, str(path))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    except UnreadableManifest as error:
        raise ConfigError(str(error)) from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def load_baseline(path: str) -> frozenset[str]:
    try:
        return read_baseline(read_text(path))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
