"""How many answers are upstream's, file by file: ``python -m tests.oracle.report``.

The tests fail on the first difference that has no name; this prints the figures of
docs/explanation/compatibility.md, in its form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.oracle import (
    test_apply_merge,
    test_apply_typed,
    test_cel_compile,
    test_cel_crd,
    test_cel_expressions,
    test_cel_fieldpath,
    test_cel_run,
    test_conversion_metadata,
    test_crd_conversion,
    test_crd_pieces,
    test_crd_validation,
    test_defaulting,
    test_listtypes,
    test_objectmeta,
    test_prepare_update,
    test_pruning,
    test_table_cells,
    test_table_columns,
    test_validate,
)
from tests.oracle.cases import Judge, cases


class Family(NamedTuple):
    name: str
    judge: Judge
    left_out: Mapping[str, str] = {}


FAMILIES = (
    Family("cel-run", test_cel_run.judge),
    Family("cel-compile", test_cel_compile.judge),
    Family("cel-crd", test_cel_crd.judge),
    Family("cel-fieldpath", test_cel_fieldpath.judge),
    Family("cel-library", test_cel_expressions.judge),
    Family("cel-language", test_cel_expressions.judge),
    Family("crd-validation", test_crd_validation.judge),
    Family("crd-pieces", test_crd_pieces.judge, test_crd_pieces.UNASKABLE),
    Family("crd-conversion", test_crd_conversion.judge),
    Family("defaulting", test_defaulting.judge),
    Family("pruning", test_pruning.judge, test_pruning.UNASKABLE),
    Family("listtypes", test_listtypes.judge),
    Family("objectmeta", test_objectmeta.judge),
    Family("validate", test_validate.judge),
    Family("conversion-metadata", test_conversion_metadata.judge),
    Family("prepare-update", test_prepare_update.judge),
    Family("table-cells", test_table_cells.judge),
    Family("table-columns", test_table_columns.judge),
    Family("apply-typed", test_apply_typed.judge, test_apply_typed.UNASKABLE),
    Family("apply-merge", test_apply_merge.judge),
)


class Figures(NamedTuple):
    cases: int
    asked: int
    verdict: int
    exact: int

    def __str__(self) -> str:
        return f"{self.cases:,} | {self.asked:,} | {self.verdict:,} | {self.exact:,}"


def figures(family: Family) -> Figures:
    every = cases(family.name)
    outcomes = [family.judge(case) for case in every if case.id not in family.left_out]
    verdicts = sum(outcome.verdict for outcome in outcomes)
    return Figures(len(every), len(outcomes), verdicts, sum(outcome.exact for outcome in outcomes))


def main() -> None:
    print("| file | cases | asked | verdict | exact |\n| --- | --- | --- | --- | --- |")
    found = []
    for family in FAMILIES:
        found.append(figures(family))
        print(f"| {family.name} | {found[-1]} |", flush=True)
    print(f"| all | {Figures(*map(sum, zip(*found, strict=True)))} |")


if __name__ == "__main__":
    main()
