"""Runs all test suites, with one embedded server per CRD.

Called by ``instar test`` and the pytest plugin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.crds.documents import read_definition
from instar.server.lifecycle.embedded import embedded
from instar.tools.suites.coverage import CaseStep, Coverage, compute_coverage
from instar.tools.suites.model import Act, Suite
from instar.tools.suites.running import Result, SuiteRunner
from instar.wire.conversion.in_process import ConvertFunction, registered_for


@dataclass(frozen=True, slots=True)
class SuiteWithCrd:
    """A suite and the CRD that it tests."""

    suite: Suite
    crd: Object

    @property
    def crd_name(self) -> str:
        return str((self.crd.get("metadata") or {}).get("name", ""))


@dataclass(slots=True)
class Run:
    results: list[Result] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Suites that could not be run, one line each."""
    coverage: dict[str, Coverage] = field(default_factory=dict)
    """By CRD."""

    @property
    def failed(self) -> int:
        return sum(not result.passed for result in self.results)


async def run_suites(
    assignments: Sequence[SuiteWithCrd],
    converters: Mapping[str, ConvertFunction] | None = None,
    *,
    wanted: str = "",
    measures: bool = False,
) -> Run:
    """Run every case whose name contains ``wanted``; ``measures`` adds coverage."""
    run = Run()
    for crd_name in dict.fromkeys(one.crd_name for one in assignments):
        mine = [one for one in assignments if one.crd_name == crd_name]
        results = await _run_crd(mine, dict(converters or {}), wanted, run)
        run.results += results
        if measures and results:
            run.coverage[crd_name] = _measured(mine[0].crd, results)
    return run


async def _run_crd(
    assignments: Sequence[SuiteWithCrd],
    converters: dict[str, ConvertFunction],
    wanted: str,
    run: Run,
) -> list[Result]:
    name, crd = assignments[0].crd_name, assignments[0].crd
    kind = str(crd["spec"]["names"]["kind"])
    converts = registered_for(converters, name, kind) is not None
    async with embedded(converters) as api:
        try:
            runner = await SuiteRunner.install(api, crd, converts=converts)
        except ValueError as error:
            run.problems.append(f"{name}: no server would take this CRD: {error}")
            return []
        return [
            await runner.run(one.suite, case)
            for one in assignments
            for case in one.suite.cases
            if wanted in case.name
        ]


def _measured(crd: Object, results: Sequence[Result]) -> Coverage:
    steps: list[CaseStep] = []
    conversions: list[tuple[str, str]] = []
    for result in results:
        before: Object | None = None
        for sent in result.sent:
            version = str(sent.get("apiVersion", "")).rpartition("/")[2]
            steps.append(CaseStep(version, sent, before))
            before = sent
        if result.case.act is Act.CONVERT and before is not None:
            source = str(before.get("apiVersion", "")).rpartition("/")[2]
            conversions.append((source, result.case.version))
    return compute_coverage(read_definition(crd).crd, steps, conversions)
