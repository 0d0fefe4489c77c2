"""Validates texts and returns verdicts, in this process or in several processes.

Called by ``instar validate``, which reads the files.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.crd import is_crd
from instar.kube.api.encoding.manifests import Document, UnreadableManifest, documents, members
from instar.server.lifecycle.embedded import embedded
from instar.tools.manifest_files import Text
from instar.tools.validator.report import ValidationFinding, ValidationLevel, Verdicts
from instar.tools.validator.validate import ManifestValidator, ObjectKey, identity

_BYTES_A_PROCESS = 400_000
"""Less input than this is validated before another process would have started."""


@dataclass(frozen=True, slots=True)
class Task:
    """The work of one process."""

    crds: tuple[Document, ...]
    texts: tuple[Text, ...]
    old: tuple[Text, ...] = ()
    own: tuple[Document, ...] = ()
    """CRDs among all texts: they serve the others, and are judged where they stand."""


def validate(task: Task, jobs: int) -> Verdicts:
    """Validate every document of the texts, in order. CRDs among the texts are installed first."""
    parsed = [_parsed(text) for text in task.texts] if _mentions_crds(task.texts) else []
    own = [one for found, _ in parsed for one in found if is_crd(one.value)]
    task = Task(task.crds, task.texts, task.old, tuple(own))
    size = sum(len(text) for _, text in task.texts)
    jobs = max(1, min(jobs, len(task.texts), size // _BYTES_A_PROCESS))
    if jobs == 1:
        return _run(task, tell_crds=True)
    parts = [Task(task.crds, part, task.old, task.own) for part in _shared_out(task.texts, jobs)]
    # Spawned, not forked: a fork of a process with threads may deadlock.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        runs = list(pool.map(_run, parts, [True] + [False] * (jobs - 1)))
    whole = Verdicts(problems=[one for run in runs for one in run.problems])
    whole.unreadable = any(run.unreadable for run in runs)
    order = {file: position for position, (file, _) in enumerate(task.texts)}
    whole.add(sorted((one for run in runs for one in run.judged), key=lambda one: order[one.file]))
    return whole


def _mentions_crds(texts: Iterable[Text]) -> bool:
    return any("CustomResourceDefinition" in text for _, text in texts)


def _shared_out(texts: Sequence[Text], jobs: int) -> list[tuple[Text, ...]]:
    """Split the texts into parts of about equal size."""
    parts: list[list[Text]] = [[] for _ in range(jobs)]
    sizes = [0] * jobs
    for text in sorted(texts, key=lambda one: len(one[1]), reverse=True):
        least = sizes.index(min(sizes))
        parts[least].append(text)
        sizes[least] += len(text[1])
    return [tuple(part) for part in parts]


def _run(task: Task, tell_crds: bool) -> Verdicts:
    return asyncio.run(_validate_task(task, tell_crds=tell_crds))


async def _validate_task(task: Task, *, tell_crds: bool) -> Verdicts:
    verdicts = Verdicts()
    async with embedded() as api:
        judge = ManifestValidator(api, _identified(task.old, verdicts))
        for crd in task.crds:
            refused = await judge.install(crd)
            if tell_crds:
                verdicts.problems += refused
        for crd in task.own:
            await judge.install(crd)
        for text in task.texts:
            found, problems = _parsed(text)
            verdicts.problems += problems
            verdicts.unreadable |= bool(problems)
            verdicts.add([await judge.judge(one) for one in found])
    return verdicts


def _identified(texts: Iterable[Text], verdicts: Verdicts) -> dict[ObjectKey, Object]:
    found: dict[ObjectKey, Object] = {}
    for text in texts:
        read, problems = _parsed(text)
        verdicts.problems += problems
        for one in read:
            if isinstance(one.value, dict) and isinstance(one.value.get("metadata"), dict):
                found[identity(one.value)] = one.value
    return found


def _parsed(text: Text) -> tuple[list[Document], list[ValidationFinding]]:
    """Parse a text; unreadable text becomes one finding."""
    file, content = text
    found: list[Document] = []
    try:
        for document in documents(content, file):
            found += members(document)
    except UnreadableManifest as error:
        why = f"not readable as YAML: {error.problem}"
        return found, [ValidationFinding(ValidationLevel.ERROR, why, file, error.line)]
    return found, []
