"""``instar convert``: converts manifest files to another version, keeping comments where possible.

``tools/sdk`` has the converters and the file rewriting.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from instar.base.plurals import counted
from instar.cli.shared.converters import add_converter_argument, given_converters
from instar.cli.shared.failure import CliFailure
from instar.kube.schema.pipeline import SchemaPipeline, pipeline_of
from instar.tools.manifest_files import Unopenable, files_of, text_of
from instar.tools.sdk.checking.case import Uncheckable
from instar.tools.sdk.checking.definition import crds_in
from instar.tools.sdk.manifests.documents import Convert, Rewritten, rewrite
from instar.tools.sdk.manifests.files import GroupKind, converting, write

EXIT_CHANGES = 1
EXIT_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[Path("-")], help="files, directories; - is stdin"
    )
    add_converter_argument(parser, required=True)
    parser.add_argument("--to", required=True, metavar="VERSION", help="the target version")
    parser.add_argument(
        "--crd",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="report and skip objects that a server with this CRD would reject; may be repeated",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--in-place", "-i", action="store_true", help="rewrite the files")
    how.add_argument("--diff", action="store_true", help="print what would change")
    parser.add_argument(
        "--check", action="store_true", help="exit 1 if anything would change; write nothing"
    )


def run(args: argparse.Namespace) -> int:
    converters = [each.built for each in given_converters(args.converter)]
    lacking = [each.kind for each in converters if args.to not in each.versions]
    if lacking:
        raise CliFailure(f"{', '.join(lacking)} has no version {args.to!r}", EXIT_USAGE)
    if args.check and args.in_place:
        raise CliFailure("--check and --in-place are mutually exclusive", EXIT_USAGE)
    pipelines = _pipelines(args.crd, args.to)
    unchecked = [each for each in converters if (each.group, each.kind) not in pipelines]
    if args.crd and unchecked:
        named = ", ".join(f"{each.kind}.{each.group}" for each in unchecked)
        raise CliFailure(f"no CRD given has version {args.to!r} of {named}", EXIT_USAGE)
    convert = converting(converters, args.to, pipelines)
    changed = failed = 0
    for number, path in enumerate(_files(args.paths)):
        result = _convert_file(args, path, convert, first=number == 0)
        changed += result.converted
        failed += len(result.problems)
    return EXIT_CHANGES if failed or (args.check and changed) else 0


def _files(paths: list[Path]) -> list[Path]:
    try:
        return [file for path in paths for file in files_of(path)]
    except Unopenable as error:
        raise CliFailure(str(error), EXIT_USAGE) from error


def _pipelines(files: list[Path], version: str) -> dict[GroupKind, SchemaPipeline]:
    """Return the schema pipeline of the wanted version, by group and kind."""
    found: dict[GroupKind, SchemaPipeline] = {}
    for path in files:
        try:
            crds = crds_in(_read(path), str(path))
        except Uncheckable as error:
            raise CliFailure(str(error), EXIT_USAGE) from error
        for crd in crds:
            wanted = crd.version(version)
            if wanted is not None:
                found[crd.group, crd.names.kind] = pipeline_of(crd, wanted)
    return found


def _convert_file(
    args: argparse.Namespace, path: Path, convert: Convert, *, first: bool
) -> Rewritten:
    name = "stdin" if path == Path("-") else str(path)
    text = _read(path)
    result = rewrite(text, convert)
    for problem in result.problems:
        print(f"{name}: {problem}", file=sys.stderr)
    if args.diff:
        sys.stdout.writelines(_diff(name, text, result.text))
    elif args.check:
        if result.converted:
            print(f"{name}: {counted(result.converted, 'object')} to convert")
    elif args.in_place and path != Path("-"):
        if result.converted:
            write(path, result.text)
            print(f"{name}: {counted(result.converted, 'object')} converted", file=sys.stderr)
    else:
        _print(result.text, first=first)
    return result


def _read(path: Path) -> str:
    try:
        return text_of(path, exact=True)
    except Unopenable as error:
        raise CliFailure(str(error), EXIT_USAGE) from error


def _diff(name: str, before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, name
    )
    return [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    ]


def _print(text: str, *, first: bool) -> None:
    """Print a file's documents, separated from those of the previous file."""
    if text and not text.startswith(("---", "{")) and not first:
        sys.stdout.write("---\n")
    sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")
