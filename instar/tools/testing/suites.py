"""pytest collectors for suites of ``instar test``: a file is a collector, a case an item.

Called by ``plugin.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from instar.tools.suites.session import SuiteWithCrd, run_suites
from instar.tools.suites.suite_files import SuiteFileError, collect_suites


class SuiteFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        problems: list[str] = []
        try:
            found = list(collect_suites([self.path], [], problems))
        except SuiteFileError as error:
            raise self.CollectError(str(error)) from None
        if problems:
            raise self.CollectError("\n".join(problems))
        for assignment in found:
            for case in assignment.suite.cases:
                alone = replace(assignment, suite=replace(assignment.suite, cases=(case,)))
                yield CaseItem.from_parent(
                    self, name=f"{case.act}: {case.name}", assignment=alone, line=case.line
                )


class CaseItem(pytest.Item):
    def __init__(self, *, assignment: SuiteWithCrd, line: int, **others: Any) -> None:
        super().__init__(**others)
        self._assignment = assignment
        self._line = line

    def runtest(self) -> None:
        run = asyncio.run(run_suites([self._assignment]))
        told = [*run.problems, *(text for result in run.results for text in result.failures)]
        if told:
            raise CaseFailed("\n".join(told))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            return f"{self.path}:{self._line}: {self.name}\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, self._line - 1, self.name


class CaseFailed(Exception):
    """The expected and the actual result, one line each."""
