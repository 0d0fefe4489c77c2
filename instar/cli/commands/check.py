"""``instar check``: searches a converter or conversion webhook for data loss.

This module defines the flags and prints the report. ``tools/sdk/checking`` has the laws (what must
be true of every conversion, such as that no field is lost) and generates the objects.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from instar.base.errors import ApiError
from instar.cli.shared.common_flags import add_cluster_arguments, add_output_argument
from instar.cli.shared.converters import (
    GivenConverter,
    add_converter_argument,
    converter_of,
    given_converters,
)
from instar.cli.shared.failure import CliFailure
from instar.kube.api.crd import Crd
from instar.tools.manifest_files import Unopenable, text_of, texts_of
from instar.tools.sdk.checking import startup
from instar.tools.sdk.checking.admission import NAMES as ADMISSION_LAWS
from instar.tools.sdk.checking.admission import check_admission
from instar.tools.sdk.checking.case import CheckCase, Responder, Uncheckable, case_of
from instar.tools.sdk.checking.definition import crd_in, objects_in, parse_crd
from instar.tools.sdk.checking.laws import LAWS, Law, law_named
from instar.tools.sdk.checking.live import check_live, live_objects
from instar.tools.sdk.checking.render import as_json, as_junit, as_pytest, as_text
from instar.tools.sdk.checking.report import CheckReport, LawResult
from instar.tools.sdk.checking.responders import InProcessResponder, UrlResponder, webhook_of
from instar.tools.sdk.checking.search import check
from instar.tools.sdk.checking.startup import startup_outcomes
from instar.tools.sdk.errors import ConverterDefinitionError
from instar.tools.sdk.loading import load_admission
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import KubeconfigError, load_access
from instar.wire.client.paths import crd_path

EXIT_UNCHECKED = 2
_LIVE = "kube:"
_UNCHECKED = (
    Uncheckable,
    ConverterDefinitionError,
    KubeconfigError,
    ApiError,
    Unopenable,
    OSError,
    ValueError,
)
"""Failures that keep the laws from being checked."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--crd",
        metavar="FILE|kube:NAME",
        help="the CRD; - is stdin; kube:NAME reads it from a cluster, with the webhook URL and CA",
    )
    parser.add_argument("--crd-name", metavar="NAME", help="which one, when the file has several")
    parser.add_argument("--versions", default="", metavar="A,B", help="only these versions")
    parser.add_argument(
        "--all-pairs",
        action="store_true",
        help="between every two versions, not only to and from the hub or storage version",
    )
    asked = parser.add_mutually_exclusive_group()
    add_converter_argument(asked)
    asked.add_argument(
        *("--webhook", "--url"),
        dest="url",
        metavar="URL",
        help="a conversion webhook, written in any language",
    )
    parser.add_argument(
        "--admission",
        metavar="MODULE:NAME",
        help="check this instar.sdk.Admission instead of conversions; a CRD that converts by "
        "webhook needs --converter or --url, too",
    )
    webhook = parser.add_argument_group("with --url")
    add = webhook.add_argument
    add(
        "--webhook-ca",
        "--ca",
        dest="ca",
        type=Path,
        metavar="PEM",
        help="CA of the webhook's certificate",
    )
    add(
        *("--webhook-client-cert", "--cert"),
        dest="cert",
        type=Path,
        metavar="PEM",
        help="client certificate",
    )
    add(
        "--webhook-client-key",
        "--key",
        dest="key",
        type=Path,
        metavar="PEM",
        help="key of the client certificate",
    )
    add(
        *("--webhook-insecure", "--insecure"),
        dest="insecure",
        action="store_true",
        help="do not verify the webhook's certificate",
    )
    webhook.add_argument(
        "--review-version",
        choices=("v1", "v1beta1"),
        default="v1",
        help="version of the ConversionReviews",
    )
    webhook.add_argument(
        "--connect", default="", metavar="HOST:PORT", help="reach it here (kubectl port-forward)"
    )
    webhook.add_argument("--hub", metavar="VERSION", help="check only to and from this version")
    webhook.add_argument(
        "--controller-version",
        default="",
        metavar="VERSION",
        help="version the controller lists, for the start-up law (default: the storage version)",
    )
    search = parser.add_argument_group("search")
    search.add_argument("--examples", type=int, default=200, metavar="N", help="objects per law")
    search.add_argument(
        "--objects",
        metavar="SOURCE",
        help="manifests of real objects: tried first, and their values in other objects",
    )
    search.add_argument("--seed", type=int, metavar="N", help="repeat a run that printed this seed")
    search.add_argument("--laws", default="", metavar="A,B", help="only these laws")
    search.add_argument("--skip", default="", metavar="A,B", help="all laws but these")
    search.add_argument("--list-laws", action="store_true", help="print the laws and exit")
    live = parser.add_argument_group("objects of a cluster instead of generated ones")
    live.add_argument("--live", action="store_true", help="read-only: lists every object")
    add_cluster_arguments(live)
    live.add_argument("--limit", type=int, default=0, metavar="N", help="objects per version")
    output = parser.add_argument_group("output")
    add_output_argument(output, ("text", "json", "junit"))
    output.add_argument(
        "--write-tests", type=Path, metavar="FILE", help="counterexamples as a pytest module"
    )
    output.add_argument("--no-progress", action="store_true", help="no bar, even on a terminal")
    output.add_argument(
        "--verbose", "-v", action="store_true", help="tracebacks of a converter that fails"
    )


def run(args: argparse.Namespace) -> int:
    if args.list_laws:
        return _list_laws()
    live_crd = str(args.crd or "").startswith(_LIVE)
    if args.admission and args.crd:
        return _check_admission(args)
    if not args.crd or not (args.converter or args.url or live_crd):
        raise CliFailure("pass --crd FILE, and --converter or --url", EXIT_UNCHECKED)
    try:
        with _case(args) as (case, given):
            report = _check(args, case, given)
            _show_tracebacks(args, case.responder)
            if live_crd:
                version = args.controller_version or case.crd.storage_version()
                report.outcomes.extend(startup_outcomes(case.crd, version))
    except _UNCHECKED as error:
        raise CliFailure(str(error), EXIT_UNCHECKED) from error
    _print(args, report)
    return report.exit_code


def _check_admission(args: argparse.Namespace) -> int:
    """Check admission handlers with the admission laws."""
    try:
        admission = load_admission(args.admission)
        live = args.crd.startswith(_LIVE)
        crd = asyncio.run(_live_crd(args)) if live else _read_crd(args.crd, args.crd_name)
        with contextlib.ExitStack() as stack:
            responder = _responder(args, crd, stack)[0] if args.converter or args.url else None
            with _progress(args, _admission_checks(crd)) as advance:
                report = check_admission(
                    crd,
                    admission,
                    responder,
                    name=args.admission,
                    examples=args.examples,
                    seed=args.seed,
                    progress=advance,
                )
    except _UNCHECKED as error:
        raise CliFailure(str(error), EXIT_UNCHECKED) from error
    _print(args, report)
    return report.exit_code


def _admission_checks(crd: Crd) -> int:
    served = sum(1 for version in crd.versions if version.served)
    return served * (len(ADMISSION_LAWS) - 1) + served * (served - 1)


def _show_tracebacks(args: argparse.Namespace, responder: Responder) -> None:
    if args.verbose and isinstance(responder, InProcessResponder):
        for text in responder.tracebacks.values():
            print(text, file=sys.stderr)


def _list_laws() -> int:
    for law in LAWS:
        print(f"{law.name:<14} {law.title}")
    print(f"{startup.LAW:<14} {startup.TITLE}")
    print(f"with --admission: {', '.join(ADMISSION_LAWS)}")
    return 0


@contextlib.contextmanager
def _case(args: argparse.Namespace) -> Iterator[tuple[CheckCase, GivenConverter | None]]:
    if args.crd.startswith(_LIVE):
        crd = asyncio.run(_live_crd(args))
    else:
        crd = _read_crd(args.crd, args.crd_name)
    with contextlib.ExitStack() as stack:
        responder, given = _responder(args, crd, stack)
        built = given.built if given else None
        case = case_of(
            crd,
            responder,
            hub=built.hub if built else args.hub,
            losses=built.losses if built else (),
            versions=_words(args.versions),
            all_pairs=args.all_pairs,
        )
        yield case, given


def _responder(
    args: argparse.Namespace, crd: Crd, stack: contextlib.ExitStack
) -> tuple[Responder, GivenConverter | None]:
    if args.converter:
        given = _converter(args, crd)
        return InProcessResponder(given.built, given.spec), given
    pair = (args.cert, args.key) if args.cert and args.key else None
    ca_data = ""
    if not args.url:
        args.url, ca_data = webhook_of(crd)
    responder = UrlResponder(
        args.url,
        ca=args.ca,
        ca_data="" if args.ca else ca_data,
        connect=args.connect,
        client_cert=pair,
        insecure=args.insecure,
        review_version=args.review_version,
    )
    return stack.enter_context(responder), None


def _converter(args: argparse.Namespace, crd: Crd) -> GivenConverter:
    given = given_converters(args.converter)
    found = converter_of(given, crd.name, crd.names.kind)
    if found is None:
        kinds = ", ".join(each.key for each in given)
        raise Uncheckable(
            f"--converter: nothing given converts {crd.names.kind}.{crd.group} of {crd.name}; "
            f"given: {kinds}"
        )
    return found


async def _live_crd(args: argparse.Namespace) -> Crd:
    async with Client(load_access(args.kubeconfig, args.context, qps=args.qps)) as client:
        return parse_crd(await client.get(crd_path(args.crd.removeprefix(_LIVE))))


def _read_crd(source: str, name: str | None) -> Crd:
    return crd_in(text_of(source), source, name)


def _check(args: argparse.Namespace, case: CheckCase, given: GivenConverter | None) -> CheckReport:
    laws = _laws(args)
    losses = given.built.losses if given else ()
    name = given.spec if given else args.url
    with _progress(args, len(case.pairs()) * len(laws)) as advance:
        if args.live:
            objects = asyncio.run(_live_objects(args, case.crd))
            return check_live(
                case, objects, converter=name, laws=laws, losses=losses, progress=advance
            )
        real = objects_in(texts_of(args.objects), case.crd) if args.objects else None
        return check(
            case,
            converter=name,
            laws=laws,
            examples=args.examples,
            seed=args.seed,
            losses=losses,
            real=real,
            progress=advance,
        )


async def _live_objects(args: argparse.Namespace, crd: Crd) -> dict[str, list[dict[str, Any]]]:
    async with Client(load_access(args.kubeconfig, args.context, qps=args.qps)) as client:
        return await live_objects(client, crd, most=args.limit)


def _laws(args: argparse.Namespace) -> list[Law]:
    wanted = {law_named(name).name for name in _words(args.laws)}
    skipped = {law_named(name).name for name in _words(args.skip)}
    return [law for law in LAWS if (not wanted or law.name in wanted) and law.name not in skipped]


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


@contextlib.contextmanager
def _progress(args: argparse.Namespace, total: int) -> Iterator[Callable[[LawResult], None]]:
    if args.no_progress or not sys.stderr.isatty():
        yield lambda outcome: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("checking", total=total)

        def advance(outcome: LawResult) -> None:
            label = f"{outcome.source} → {outcome.target} {outcome.law}"
            bar.update(task, advance=1, description=label)

        yield advance


def _print(args: argparse.Namespace, report: CheckReport) -> None:
    renderers = {"text": as_text, "json": as_json, "junit": as_junit}
    sys.stdout.write(renderers[args.output](report))
    if args.write_tests and report.broken:
        if not args.converter:
            raise CliFailure("--write-tests needs --converter: tests run in process", 2)
        args.write_tests.write_text(as_pytest(report, args.crd, report.converter), encoding="utf-8")
        print(f"counterexamples written to {args.write_tests}", file=sys.stderr)
