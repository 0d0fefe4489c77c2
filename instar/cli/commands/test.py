"""``instar test``: runs unit tests of CRDs, written as YAML beside them.

``tools/suites`` runs them. Exit 0: all passed; 1: a case failed; 2: no suite, or an unreadable one.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.cli.serving.converter_flags import load_converters
from instar.cli.shared.common_flags import add_output_argument
from instar.cli.shared.converters import add_converter_argument
from instar.cli.shared.failure import CliFailure
from instar.tools.reviewer.sources import load_objects
from instar.tools.suites.recording import record_suite
from instar.tools.suites.render import FORMS
from instar.tools.suites.session import run_suites
from instar.tools.suites.suite_files import SuiteFileError, collect_suites, crds_of

_HELP = """\
A suite names its CRD (crdName, or crd: a file beside it) and holds cases under tests.onCreate,
onUpdate, onApply and onConvert; OpenShift's suites are read as they are. CRDs are looked for in
--crd, in the folder itself, and in the folders above it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _HELP
    parser.add_argument("paths", nargs="+", metavar="PATH", help="suites: files or folders")
    parser.add_argument(
        "--crd", action="append", default=[], metavar="SOURCE", help="a file, folder, git: or kube:"
    )
    parser.add_argument(
        "-k",
        dest="wanted",
        default="",
        metavar="TEXT",
        help="run only cases with TEXT in their name",
    )
    add_converter_argument(parser, "For cases under onConvert")
    parser.add_argument(
        "--coverage", action="store_true", help="report which parts of the CRDs no case exercises"
    )
    parser.add_argument(
        "--fail-under",
        type=float,
        metavar="PERCENT",
        help="with --coverage: fail below this percentage",
    )
    parser.add_argument(
        "--write",
        metavar="CRD",
        help="generate a first suite for a CRD file at PATH, with the server's current answers",
    )
    parser.add_argument("--samples", metavar="PATH", help="with --write: objects to start from")
    add_output_argument(parser, FORMS)


def run(args: argparse.Namespace) -> int:
    if args.write:
        return _write(args)
    problems: list[str] = []
    try:
        found_suites = list(collect_suites([Path(each) for each in args.paths], args.crd, problems))
    except SuiteFileError as error:
        raise CliFailure(str(error), 2) from None
    if not found_suites and not problems:
        raise CliFailure(f"no suite found in {', '.join(args.paths)}", 2)
    measures = args.coverage or args.fail_under is not None
    found = asyncio.run(
        run_suites(
            found_suites, load_converters(args.converter), wanted=args.wanted, measures=measures
        )
    )
    found.problems[:0] = problems
    sys.stdout.write(FORMS[args.output](found))
    low = [each for each in found.coverage.values() if each.percent < (args.fail_under or 0)]
    if found.problems:
        return 2
    return int(bool(found.failed or low))


def _write(args: argparse.Namespace) -> int:
    target = Path(args.paths[0])
    if target.exists():
        raise CliFailure(f"{target} exists already and is not overwritten", 2)
    if not target.parent.is_dir():
        raise CliFailure(f"{target}: the folder {target.parent} does not exist", 2)
    try:
        crds = crds_of([args.write])
    except SuiteFileError as error:
        raise CliFailure(str(error), 2) from None
    if len(crds) != 1:
        raise CliFailure(
            f"--write {args.write}: {counted(len(crds), 'CRD')} found, exactly one is needed", 2
        )
    samples: list[Object] = []
    if args.samples:
        samples = asyncio.run(load_objects(args.samples)).objects
    try:
        text = asyncio.run(record_suite(next(iter(crds.values())), samples))
    except ValueError as error:
        raise CliFailure(f"{args.write}: a server would reject this CRD: {error}") from None
    target.write_text(text, encoding="utf-8")
    print(f"wrote {target}: the server's current answers; review them before you rely on them")
    return 0
