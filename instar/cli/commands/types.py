"""``instar types``: generates Python models of custom resources from their CRDs.

``kube/models`` generates the text; this module reads CRDs and writes files.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from instar.cli.shared.common_flags import add_cluster_arguments
from instar.cli.shared.failure import CliFailure
from instar.kube.api.crd_codec import CrdDecodeError
from instar.kube.crds.documents import read_definition
from instar.kube.models.crd_models import VersionModel, version_models
from instar.kube.models.modules import STYLES, module_of, package_of
from instar.tools.reviewer.sources import ReviewedCluster, load_crds

INTERMIXED = True
"""Options may appear between positional arguments."""
_SOURCES = """\
A CRD is a file, a folder, - (stdin), git:REF:PATH, kube:NAME or kube: (every CRD of the cluster).

  instar types crds/ --python pydantic -o models/
  instar types kube:certificates.cert-manager.io --python msgspec --version v1 -o certificate.py
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _SOURCES
    parser.add_argument(
        "sources", nargs="+", metavar="CRD", help="sources of CRDs: files, folders, git: or kube:"
    )
    parser.add_argument(
        "--python", required=True, choices=tuple(STYLES), help="style of the models"
    )
    parser.add_argument(
        "--version",
        action="append",
        default=[],
        metavar="VERSION",
        help="only this version of the CRDs; may be repeated",
    )
    parser.add_argument(
        "--partial",
        action="store_true",
        help="for converters, which see partial objects: no field is required or validated",
    )
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="FILE|DIR",
        help="a .py file, or a folder that becomes a package with a module per version "
        "(default: standard output)",
    )
    cluster = parser.add_argument_group("cluster")
    add_cluster_arguments(cluster)


def run(args: argparse.Namespace) -> int:
    roots = asyncio.run(_roots(args))
    if not roots:
        versions = f" of version {', '.join(args.version)}" if args.version else ""
        raise CliFailure(f"no CRD{versions} in {', '.join(args.sources)}", 2)
    target: Path | None = args.output
    if target is None:
        sys.stdout.write(module_of(roots, args.python, partial=args.partial))
    elif target.suffix == ".py":
        _write(target, module_of(roots, args.python, partial=args.partial))
    else:
        for name, text in package_of(roots, args.python, partial=args.partial).items():
            _write(target / name, text)
    return 0


async def _roots(args: argparse.Namespace) -> list[VersionModel]:
    cluster = ReviewedCluster(args.kubeconfig, args.context, args.qps)
    found: list[VersionModel] = []
    for source in args.sources:
        loaded = await load_crds(source, cluster)
        if loaded.problems:
            raise CliFailure(str(loaded.problems[0]), 2)
        for document in loaded.crds.values():
            try:
                definition = read_definition(document.value)
            except CrdDecodeError as error:
                raise CliFailure(f"{document.file}: {error}", 2) from None
            found += version_models(definition.raw, args.version)
    return found


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliFailure(f"{error.filename or path}: {error.strerror or error}", 2) from None
