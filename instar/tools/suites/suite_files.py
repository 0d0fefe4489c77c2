"""Finds CRD test suites and the CRDs they test in files.

It is the only module of the package that reads files.

Called by ``instar test`` and the pytest plugin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from instar.base.json_values import Object
from instar.tools.manifest_files import Unopenable, texts_of
from instar.tools.reviewer.sources import ReviewedCluster, load_crds
from instar.tools.suites.model import Suite, SuiteError, read_suites
from instar.tools.suites.session import SuiteWithCrd


class SuiteFileError(Exception):
    """A required file is missing or unreadable; ``str()`` is one line."""


def collect_suites(
    paths: Sequence[Path], sources: Sequence[str], problems: list[str]
) -> Iterator[SuiteWithCrd]:
    """Yield the suites of ``paths`` with their CRDs, from ``sources``, the file a suite names, or
    nearby folders. A suite without a CRD is added to ``problems``. Raises ``SuiteFileError``."""
    given = crds_of(sources)
    for path in paths:
        around: dict[str, Object] | None = None
        for suite in suites_of(path):
            if suite.crd_file:
                own = crds_of([str(Path(suite.file).parent / suite.crd_file)])
                yield SuiteWithCrd(suite, next(iter(own.values())))
                continue
            crd = given.get(suite.crd_name)
            if crd is None:
                around = _crds_around(path) if around is None else around
                crd = around.get(suite.crd_name)
            if crd is None:
                text = f"{suite.file}: there is no CRD {suite.crd_name} in --crd or around it"
                problems.append(text)
                continue
            yield SuiteWithCrd(suite, crd)


def suites_of(path: Path) -> Iterator[Suite]:
    """Yield the suites of a file or folder. Raises ``SuiteFileError``."""
    try:
        for file, text in texts_of(path):
            if "tests:" in text or '"tests"' in text:
                yield from read_suites(text, file)
    except (Unopenable, SuiteError) as error:
        raise SuiteFileError(str(error)) from None


def crds_of(sources: Sequence[str]) -> dict[str, Object]:
    """Return CRDs by name. Raises ``SuiteFileError``."""
    found: dict[str, Object] = {}
    for source in sources:
        loaded = asyncio.run(load_crds(source, ReviewedCluster()))
        if loaded.problems:
            raise SuiteFileError(str(loaded.problems[0]))
        found |= {name: each.value for name, each in loaded.crds.items()}
    return found


def _crds_around(path: Path) -> dict[str, Object]:
    """Return CRDs of the suite's folder, then of the two above it."""
    folder = (path if path.is_dir() else path.parent).resolve()
    for place in (folder, folder.parent, folder.parent.parent):
        loaded = asyncio.run(load_crds(str(place), ReviewedCluster()))
        if loaded.crds:
            return {name: each.value for name, each in loaded.crds.items()}
    return {}
