"""``instar rehearse``: tries an upgrade, its migration and its rollback on a copy of the cluster.

``tools/rehearsal`` runs it. Exit 0: go; 1: no-go; 2: unusable input or options.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.cli.shared.common_flags import add_cluster_arguments
from instar.cli.shared.converters import add_converter_argument, given_converters
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.output_flags import (
    EXIT_UNUSABLE,
    add_output_arguments,
    read_outputs,
    write_outputs,
)
from instar.kube.api.crd_codec import CrdDecodeError
from instar.tools.rehearsal.converting import Converting
from instar.tools.rehearsal.go_no_go import WORDS, decide
from instar.tools.rehearsal.render import FORMS, MACHINE
from instar.tools.rehearsal.render.text import to_text
from instar.tools.rehearsal.run import BATCH, Progress, RehearsalOptions, RehearsalRelease, rehearse
from instar.tools.reviewer.render.outputs import ReportOutput
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.sources import ReviewedCluster, load_crds
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.sources import open_captured_cluster

_START_SECONDS = 30.0
_EXAMPLES = """\
FROM is a snapshot, a folder of manifests, a dump or a backup, or kube: (the cluster itself is only
read). TO are files, folders, git:REF:PATH or - for one release; --to again is the release after it.

  instar rehearse --from cluster.tar.gz --to crds/
  instar rehearse --from kube: --to git:v2:config/crd --to git:v3:config/crd -o html=report.html
  helm template ./chart --include-crds | instar rehearse --from dump/ --to -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    add = parser.add_argument
    add(
        "--from",
        dest="source",
        required=True,
        metavar="FROM",
        help="the cluster before the upgrade: a snapshot, folder or kube:",
    )
    add(
        "--to",
        action="append",
        nargs="+",
        required=True,
        metavar="TO",
        help="the CRDs of a release; may be repeated, in order",
    )
    converting = parser.add_argument_group("conversion")
    add_converter_argument(converting)
    converting.add_argument(
        "--webhook",
        action="append",
        default=[],
        metavar="[CRD=]URL",
        help="a running conversion webhook, for one CRD or for all that have one",
    )
    converting.add_argument(
        "--webhook-ca", type=Path, metavar="PEM", help="CA of the webhook's certificate"
    )
    converting.add_argument(
        "--webhook-command", metavar="COMMAND", help="command that starts the webhook of --webhook"
    )
    judging = parser.add_argument_group("judgement")
    judging.add_argument(
        "--accept",
        action="append",
        default=[],
        choices=WORDS,
        metavar="WORD",
        help=f"go in spite of: {', '.join(WORDS)}",
    )
    judging.add_argument(
        "--sample",
        type=int,
        default=20,
        metavar="N",
        help="objects per field manager and batch, and per fault (default: 20)",
    )
    judging.add_argument("--no-faults", action="store_true", help="do not inject faults")
    judging.add_argument(
        "--jobs", "-j", type=int, default=os.cpu_count() or 1, metavar="N", help="processes"
    )
    judging.add_argument(
        "--batch", type=int, default=BATCH, metavar="N", help="objects per batch of a process"
    )
    output = parser.add_argument_group("output")
    add_output_arguments(output, FORMS, details="diffs, bases, everything")
    cluster = parser.add_argument_group("cluster")
    add_cluster_arguments(cluster)


def run(args: argparse.Namespace) -> int:
    outputs = read_outputs(args.output, FORMS)
    if min(args.sample, args.jobs, args.batch) < 1:
        raise CliFailure("--sample, --jobs and --batch must be at least 1", EXIT_UNUSABLE)
    cluster = ReviewedCluster(args.kubeconfig, args.context, args.qps)
    converting = _converting(args)
    releases = asyncio.run(_releases(args.to, cluster))
    options = RehearsalOptions(
        converting, args.jobs, args.batch, sample=args.sample, faults=not args.no_faults
    )
    try:
        with (
            _running_webhook(args.webhook_command, list(converting.urls.values())),
            open_captured_cluster(args.source, cluster) as world,
        ):
            report = rehearse(world, releases, options, _progress())
    except SnapshotError as error:
        raise CliFailure(str(error), EXIT_UNUSABLE) from None
    decision = decide(report, args.accept)

    def rendered(output: ReportOutput) -> str:
        if output.form != "text":
            return MACHINE[output.form](report, decision)
        return to_text(report, decision, colour=_colour(args, output.file), details=args.details)

    write_outputs(outputs, rendered)
    return 0 if decision.go else 1


async def _releases(
    given: Sequence[Sequence[str]], cluster: ReviewedCluster
) -> list[RehearsalRelease]:
    found: list[RehearsalRelease] = []
    for sources in given:
        crds: dict[str, Object] = {}
        for source in sources:
            loaded = await load_crds(source, cluster)
            if loaded.problems:
                raise CliFailure(str(loaded.problems[0]), EXIT_UNUSABLE)
            for name, document in loaded.crds.items():
                try:
                    crds[name] = read_reviewed_crd(document.value).raw
                except CrdDecodeError as error:
                    text = f"{document.file}: {name} is not a usable CRD: {error}"
                    raise CliFailure(text, EXIT_UNUSABLE) from None
        name = " ".join(sources)
        taken = {release.name for release in found}
        found.append(
            RehearsalRelease(name if name not in taken else f"{name} ({len(found) + 1})", crds)
        )
    return found


def _converting(args: argparse.Namespace) -> Converting:
    # report an unusable converter now; the worker processes load their own
    modules = {each.key: each.spec for each in given_converters(args.converter)}
    urls = {}
    for given in args.webhook:
        crd, equals, url = given.partition("=")
        if not equals or "://" in crd:
            crd, url = "", given
        if urlsplit(url).scheme != "https":
            raise CliFailure(f"--webhook {given}: expected [CRD=]https://…", EXIT_UNUSABLE)
        urls[crd] = url
    if args.webhook_command and not urls:
        raise CliFailure("--webhook-command needs --webhook, the URL it listens on", EXIT_UNUSABLE)
    try:
        ca = args.webhook_ca.read_bytes() if args.webhook_ca else b""
    except OSError as error:
        raise CliFailure(f"{args.webhook_ca}: {error.strerror}", EXIT_UNUSABLE) from None
    return Converting(modules, urls, ca)


@contextlib.contextmanager
def _running_webhook(command: str | None, urls: list[str]) -> Iterator[None]:
    """Run the webhook's program until the rehearsal is over."""
    if not command:
        yield
        return
    try:
        process = subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL)
    except (OSError, ValueError) as error:
        raise CliFailure(f"--webhook-command: {error}", EXIT_UNUSABLE) from None
    try:
        for url in urls:
            _wait_for(url, process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    parts = urlsplit(url)
    deadline = time.monotonic() + _START_SECONDS
    while True:
        if process.poll() is not None:
            text = f"--webhook-command ended with exit code {process.returncode}"
            raise CliFailure(text, EXIT_UNUSABLE)
        try:
            socket.create_connection((parts.hostname or "", parts.port or 443), 1).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise CliFailure(f"--webhook {url}: {error}", EXIT_UNUSABLE) from None
        time.sleep(0.05)


def _progress() -> Progress:
    """Show one updated line on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda name, count: None
    done: dict[str, int] = {}

    def tell(name: str, count: int) -> None:
        done[name] = done.get(name, 0) + count
        print(
            f"\r\x1b[K{name}: {counted(f'{done[name]:,}', 'object')}",
            end="",
            file=sys.stderr,
            flush=True,
        )

    return tell


def _colour(args: argparse.Namespace, file: Path | None) -> bool:
    if args.color != "auto":
        return bool(args.color == "always")
    return file is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
