"""Checks the laws of conversion (``laws.py``) on the objects of a cluster instead of generated
ones. It only reads from the cluster.

``instar check --live`` calls it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from instar.base.json_values import Object
from instar.kube.api.crd import Crd
from instar.tools.sdk.checking.case import CheckCase, ContractBroken, ConversionRejected
from instar.tools.sdk.checking.laws import LAWS, Inapplicable, Law, LawBroken, VersionPair
from instar.tools.sdk.checking.minimise import minimise
from instar.tools.sdk.checking.parts import removable, without_paths
from instar.tools.sdk.checking.report import CheckReport, Counterexample, LawResult
from instar.tools.sdk.checking.search import Progress
from instar.tools.sdk.ruleset import Loss
from instar.wire.client.client import Client
from instar.wire.client.paths import resource_path

MOST_PARTS = 30


async def live_objects(client: Client, crd: Crd, *, most: int = 0) -> dict[str, list[Object]]:
    """Return the objects of every served version, as the cluster serves them."""
    found: dict[str, list[Object]] = {}
    for version in crd.served():
        path = resource_path(crd.group, version, crd.names.plural)
        objects: list[Object] = []
        async for page in client.pages(path, limit=500):
            for item in page.get("items") or ():
                api_version = f"{crd.group}/{version}"
                objects.append({**item, "apiVersion": api_version, "kind": crd.names.kind})
            if most and len(objects) >= most:
                break
        found[version] = objects[:most] if most else objects
    return found


def check_live(
    case: CheckCase,
    objects: dict[str, list[Object]],
    *,
    converter: str = "",
    laws: Sequence[Law] = LAWS,
    losses: tuple[Loss, ...] = (),
    progress: Progress = lambda outcome: None,
) -> CheckReport:
    report = CheckReport(case.crd.name, converter, 0, losses=losses)
    for source, target in case.pairs():
        pair = VersionPair(case, case.versions[source], case.versions[target])
        for law in laws:
            outcome = _judge(pair, law, objects.get(source, []))
            report.outcomes.append(outcome)
            progress(outcome)
    return report


def _judge(pair: VersionPair, law: Law, objects: Sequence[Object]) -> LawResult:
    began, tested, counterexample = time.perf_counter(), 0, None
    for inputs in _inputs(pair, law, objects):
        try:
            law.check(pair, inputs)
        except Inapplicable:
            continue
        except LawBroken:
            inputs, broken = minimise(pair, law, inputs, simplify=False)
            counterexample = Counterexample(broken.message, inputs, broken.steps, broken.found)
            break
        tested += 1
    seconds = time.perf_counter() - began
    note = "" if objects else "the cluster has no such object"
    names = (pair.source.name, pair.target.name)
    return LawResult(law.name, law.title, *names, tested, seconds, counterexample, note)


def _inputs(pair: VersionPair, law: Law, objects: Sequence[Object]) -> Iterator[list[Object]]:
    """Yield live objects as inputs of a law; another object serves as the edited one."""
    for position, obj in enumerate(objects):
        other = objects[(position + 1) % len(objects)]
        if "part" in law.inputs:
            fields = removable(obj, pair.source.compiled.structural)
            for field in fields[:MOST_PARTS]:
                yield [obj, without_paths(obj, [field])]
        elif "target" in law.inputs:
            try:
                edit = pair.case.view(other, pair.target)
            except (ConversionRejected, ContractBroken):
                continue
            yield [obj, edit, other]
        else:
            yield [obj if place == 0 else other for place in range(len(law.inputs))]
