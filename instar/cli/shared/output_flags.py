"""``--output FORM[=FILE]``, repeatable: several report formats from one run.

Used by ``instar review`` and ``instar rehearse``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from instar.cli.shared.failure import CliFailure
from instar.tools.reviewer.render.outputs import ReportOutput, mixes_formats, read_output

EXIT_UNUSABLE = 2


def add_output_arguments(
    group: argparse._ArgumentGroup, forms: Sequence[str], *, details: str
) -> None:
    """Add the flags; ``details`` is the help of the flag for longer text output."""
    group.add_argument(
        "--output",
        "-o",
        action="append",
        default=[],
        metavar="FORM[=FILE]",
        help=f"{', '.join(forms)}; may be repeated, each to a file of its own (default: text)",
    )
    group.add_argument(*("--details", "--verbose", "-v"), action="store_true", help=details)
    group.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="auto: on a terminal"
    )


def read_outputs(texts: Sequence[str], forms: Sequence[str]) -> list[ReportOutput]:
    try:
        outputs = [read_output(text, forms) for text in texts or ["text"]]
    except ValueError as error:
        raise CliFailure(f"--output: {error}", EXIT_UNUSABLE) from None
    if mixes_formats(outputs):
        raise CliFailure(
            "--output: two forms on standard output; give one a file: markdown=FILE", EXIT_UNUSABLE
        )
    return outputs


def write_outputs(outputs: Sequence[ReportOutput], rendered: Callable[[ReportOutput], str]) -> None:
    for output in outputs:
        text = rendered(output)
        if output.file is None:
            sys.stdout.write(text)
            continue
        try:
            output.file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CliFailure(f"{output.file}: {error.strerror}", EXIT_UNUSABLE) from error
