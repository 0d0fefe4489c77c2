"""Reads from git: files of a revision, commits of a file, the repository of a path.

The ``sources.py`` of the reviewer and of snapshots, and ``render/outputs.py``, call it. It runs the
``git`` program; a failure is a ``GitError`` of one line.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from instar.tools.manifest_files import is_manifest

MERGE_BASE = "..."
"""``main...`` is the merge base of ``main`` and the checked-out branch."""


class GitError(Exception):
    """A failure of git, in one line."""


class Commit(NamedTuple):
    """One commit in a file's history."""

    revision: str
    title: str
    path: str


def texts_at(reference: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of a file, or of every manifest in a folder, at a revision."""
    folder, inside = repository(path)
    revision = _revision(folder, reference)
    spec = f"{revision}:{inside}"
    kind = _git(folder, "cat-file", "-t", spec)
    if not kind and not Path(path).is_absolute():
        # git reads such a path from the top of the repository
        spec = f"{revision}:{path}"
        kind = _git(folder, "cat-file", "-t", spec)
    if not kind:
        raise GitError(f"{path or '.'} does not exist at {reference}")
    if kind == "blob":
        yield f"git:{reference}:{path}", _git(folder, "show", spec, must=True)
        return
    names = _git(folder, "ls-tree", "-r", "--name-only", "-z", spec, must=True)
    for name in sorted(filter(None, names.split("\0"))):
        if is_manifest(PurePosixPath(name)):
            text = _git(folder, "show", f"{spec.rstrip('/')}/{name}".replace(":/", ":"), must=True)
            yield f"git:{reference}:{path.rstrip('/')}/{name}", text


def repository(path: str) -> tuple[Path, str]:
    """Return the root of the repository of a path, and the path relative to it."""
    start = Path(path).absolute()
    around = next((item for item in (start, *start.parents) if item.is_dir()), Path.cwd())
    top = _git(around, "rev-parse", "--show-toplevel")
    if not top:
        raise GitError("not inside a git repository")
    try:
        inside = start.resolve().relative_to(Path(top).resolve())
    except ValueError:
        raise GitError(f"{path} is outside the repository {top}") from None
    return Path(top), "" if str(inside) == "." else inside.as_posix()


def commits_of(path: str) -> list[Commit]:
    """Return the commits that touched a file, oldest first, following renames."""
    top, inside = repository(path)
    log = _git(
        top, "log", "--follow", "--name-only", "--format=%x00%h %ad %s", "--date=short",
        "--", inside, must=True,
    )  # fmt: skip
    commits = []
    for entry in log.split("\0")[1:]:
        head, _, names = entry.strip().partition("\n")
        revision, _, title = head.partition(" ")
        name = names.strip().splitlines()
        commits.append(Commit(revision, title, str(top / (name[-1] if name else inside))))
    return commits[::-1]


def _revision(folder: Path, reference: str) -> str:
    name = reference.removesuffix(MERGE_BASE)
    revision = _git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not revision:
        raise GitError(f"there is no revision {name!r}{_shallow(folder)}")
    if name == reference:
        return revision
    base = _git(folder, "merge-base", revision, "HEAD")
    if not base:
        raise GitError(f"{name} and HEAD have no common commit{_shallow(folder)}")
    return base


def _shallow(folder: Path) -> str:
    """Return a hint if the clone is shallow, the usual reason in a pipeline."""
    if _git(folder, "rev-parse", "--is-shallow-repository") != "true":
        return ""
    return (
        "; this clone is shallow: fetch its history (actions/checkout with fetch-depth: 0, "
        "GIT_DEPTH: 0 in GitLab, git fetch --unshallow)"
    )


def _git(folder: Path, *words: str, must: bool = False) -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
    except (OSError, UnicodeDecodeError) as error:
        raise GitError(f"git: {error}") from None
    if done.returncode:
        if must:
            raise GitError(done.stderr.strip().splitlines()[0] if done.stderr else "git failed")
        return ""
    return done.stdout if must else done.stdout.strip()
