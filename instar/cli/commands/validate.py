"""``instar validate``: validates manifests offline, exactly as the server would.

``tools/validator`` does it, with an embedded server. Exit 0: all are valid; 1: something was
rejected; 2: unreadable input.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from instar.cli.shared.common_flags import add_cluster_arguments, add_output_argument
from instar.cli.shared.failure import CliFailure
from instar.kube.api.encoding.manifests import Document
from instar.tools.manifest_files import Text, Unopenable, texts_of
from instar.tools.reviewer.sources import ReviewedCluster, load_crds
from instar.tools.validator.render import FORMS
from instar.tools.validator.run import Task, validate

INTERMIXED = True
"""Options may appear between positional arguments, and before the ``--`` that separates CRDs from
objects."""
_EXAMPLES = """\
CRDs are files, folders, git:REF:PATH, kube:NAME or kube: (every CRD of the cluster); objects are
files, folders or - (standard input). Without -- there are only objects, and CRDs found among them
serve the others:

  instar validate crds/ -- manifests/
  helm template ./chart --include-crds | instar validate -
  instar validate --old before/ kube: -- manifests/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.usage = "instar validate [options] [CRD … --] OBJECT …"
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help=argparse.SUPPRESS)
    parser.add_argument(
        *("--crd", "--crds"),
        dest="crds",
        action="append",
        default=[],
        metavar="SOURCE",
        help="source of CRDs; the same as before the --",
    )
    parser.add_argument(
        "--old",
        action="append",
        default=[],
        metavar="PATH",
        help="the stored objects: an object found there is validated as an update, so that "
        "unchanged old errors are tolerated (ratcheting)",
    )
    parser.add_argument(
        "--ignore-unknown", action="store_true", help="do not fail for kinds without a CRD"
    )
    parser.add_argument("--strict", action="store_true", help="treat warnings as failures")
    parser.add_argument(
        "--jobs",
        "-j",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="maximum number of processes (default: the number of cores)",
    )
    add_output_argument(parser, FORMS)
    add_cluster_arguments(parser.add_argument_group("cluster"))


def run(args: argparse.Namespace) -> int:
    crds, objects = _split(args)
    cluster = ReviewedCluster(args.kubeconfig, args.context, args.qps)
    loaded = asyncio.run(_crds([*crds, *args.crds], cluster))
    task = Task(
        tuple(loaded),
        tuple(text for source in objects for text in _texts(source)),
        tuple(text for source in args.old for text in _texts(source)),
    )
    if not task.texts:
        raise CliFailure(f"no manifests in {', '.join(objects)}", 2)
    verdicts = validate(task, args.jobs)
    sys.stdout.write(FORMS[args.output](verdicts))
    if not verdicts.judged and not verdicts.problems:
        print(f"instar validate: no objects in {', '.join(objects)}", file=sys.stderr)
    return verdicts.exit_code(strict=args.strict, unknown_is_fine=args.ignore_unknown)


def _split(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Split the arguments at ``--``, which argparse has removed."""
    if "--" not in args.arguments:
        return [], args.sources
    behind = len(args.arguments) - args.arguments.index("--") - 1
    objects = args.sources[len(args.sources) - behind :] if behind else []
    return args.sources[: len(args.sources) - behind], objects


async def _crds(sources: list[str], cluster: ReviewedCluster) -> list[Document]:
    found: list[Document] = []
    for source in sources:
        loaded = await load_crds(source, cluster)
        if loaded.problems:
            raise CliFailure(str(loaded.problems[0]), 2)
        found += loaded.crds.values()
    return found


def _texts(source: str) -> list[Text]:
    try:
        return list(texts_of(source))
    except Unopenable as error:
        raise CliFailure(str(error), 2) from None
