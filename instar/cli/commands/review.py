"""``instar review``: reports what a CRD change breaks, for which clients, and how to do it safely.

``tools/reviewer`` has the rules. Exit 0: no finding at or above ``--fail-on``; 1: at least one; 2:
unusable input or configuration.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path

from instar.base.json_values import Object
from instar.cli.shared.common_flags import add_cluster_arguments
from instar.cli.shared.converters import add_converter_argument, converter_of, given_converters
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.output_flags import (
    EXIT_UNUSABLE,
    add_output_arguments,
    read_outputs,
    write_outputs,
)
from instar.kube.api.encoding.manifests import Document
from instar.tools.reviewer.added_removed import with_presence, without_unread
from instar.tools.reviewer.admission.findings import with_admission
from instar.tools.reviewer.advice import advice
from instar.tools.reviewer.config import Config, ConfigError, decide, fail_on, write_baseline
from instar.tools.reviewer.engine import ReviewOptions
from instar.tools.reviewer.render import MACHINE
from instar.tools.reviewer.render.comment_budget import COMMENT, SUMMARY
from instar.tools.reviewer.render.json import json_schema
from instar.tools.reviewer.render.markdown import to_markdown
from instar.tools.reviewer.render.outputs import (
    FORMS,
    ReportOutput,
    in_repository,
    path_in_repository,
)
from instar.tools.reviewer.render.pull_request_comment import CommentFailed, post, pull_request
from instar.tools.reviewer.render.shared import slug
from instar.tools.reviewer.render.text import to_text
from instar.tools.reviewer.report import CrdReview, Problem, Report
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.reviewing import ConverterFor, StoredObjects, review_documents
from instar.tools.reviewer.rules import RULES
from instar.tools.reviewer.sources import (
    ReviewedCluster,
    history,
    load_admission,
    load_baseline,
    load_config,
    load_crds,
    load_live_objects,
    load_objects,
    whole_cluster,
)
from instar.tools.reviewer.stored import Convert, Unconvertible
from instar.tools.sdk.checking.case import Responder, Uncheckable
from instar.tools.sdk.checking.responders import InProcessResponder, UrlResponder
from instar.tools.sdk.errors import ConversionError

_SOURCES = """\
A source is a file, a folder, - (stdin), git:REF:PATH (git:REF...:PATH is where the branch left
REF), kube:NAME or kube: (every CRD of the cluster; kube:NAME?context=CTX names another one). One
source alone is linted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _SOURCES
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="OLD NEW, or NEW alone")
    parser.add_argument("--history", metavar="PATH", help="review every commit of a file")
    parser.add_argument(
        "--removed",
        action="store_true",
        help="with kube: as OLD, CRDs of the cluster that NEW does not have count as removed",
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="files of a folder to leave out: a name or a path, * is anything; may be repeated",
    )
    parser.add_argument(
        "--all", action="store_true", help="include findings that the old CRD already had"
    )
    parser.add_argument("--no-witnesses", action="store_true", help="do not search for evidence")
    objects = parser.add_argument_group("stored objects")
    objects.add_argument(
        "--objects",
        metavar="SOURCE",
        help="validate every real object (a folder, or kube:) under the new CRD",
    )
    converting = objects.add_mutually_exclusive_group()
    add_converter_argument(converting)
    converting.add_argument("--webhook", metavar="URL", help="a running conversion webhook")
    objects.add_argument(
        "--webhook-ca", type=Path, metavar="PEM", help="CA of the webhook's certificate"
    )
    objects.add_argument(
        "--webhook-insecure", action="store_true", help="do not verify the webhook's certificate"
    )
    parser.add_argument(
        "--admission",
        metavar="SOURCE",
        help="webhook configurations and policies that must keep working",
    )
    decisions = parser.add_argument_group("decisions")
    decisions.add_argument(
        "--config", metavar="FILE", help="configuration file (default: the nearest instar.toml)"
    )
    decisions.add_argument(
        "--fail-on",
        choices=("error", "warning", "none"),
        help="exit 1 for findings of this severity (default: the configuration's, or error)",
    )
    decisions.add_argument("--baseline", metavar="FILE", help="known findings to leave out")
    decisions.add_argument(
        "--write-baseline", metavar="FILE", help="write the findings as a baseline"
    )
    output = parser.add_argument_group("output")
    add_output_arguments(output, FORMS, details="witnesses, plan, notes")
    output.add_argument(
        "--comment",
        action="store_true",
        help="in a GitHub Actions job: post the report on the pull request, or update the comment "
        "of the last run (needs GITHUB_TOKEN with pull-requests: write)",
    )
    output.add_argument("--rules", action="store_true", help="list the rules and exit")
    output.add_argument("--explain", metavar="RULE", help="explain a rule and exit")
    output.add_argument(
        "--report-schema",
        action="store_true",
        help="print the JSON Schema of -o json, and exit",
    )
    cluster = parser.add_argument_group("cluster")
    add_cluster_arguments(cluster)


def run(args: argparse.Namespace) -> int:
    if args.rules:
        return _list_rules()
    if args.report_schema:
        return _print_schema()
    if args.explain:
        return _explain(args.explain)
    try:
        return _review(args, read_outputs(args.output, FORMS))
    except ConfigError as error:
        raise CliFailure(str(error), EXIT_UNUSABLE) from None


def _list_rules() -> int:
    width = max(len(rule.id) for rule in RULES)
    for rule in RULES:
        print(f"{rule.id:{width}}  {rule.severity:7}  {rule.summary}")
    return 0


def _explain(name: str) -> int:
    known = {rule.id: rule for rule in RULES}
    if name not in known:
        near = get_close_matches(name, known, n=3)
        listed = f"did you mean {', '.join(near)}?" if near else "instar review --rules lists them"
        raise CliFailure(f"there is no rule {name!r}; {listed}", EXIT_UNUSABLE)
    rule = known[name]
    hits = ", ".join(str(hit) for hit in rule.hits) or "no clients"
    print(f"{rule.id} ({rule.severity})\n\n{rule.summary}\n\nhits: {hits}\n\n{advice(name)}")
    print(f"\n{slug(name)}")
    return 0


def _print_schema() -> int:
    print(json.dumps(json_schema(), indent=2))
    return 0


def _review(args: argparse.Namespace, outputs: list[ReportOutput]) -> int:
    config = load_config(args.config)
    options = ReviewOptions(severities=config.severities, all=args.all)
    with _converting(args) as converter_for:
        report = _history(args, options) if args.history else _pair(args, options, converter_for)
    if args.write_baseline:
        Path(args.write_baseline).write_text(write_baseline(report), encoding="utf-8")
    baseline = _baseline(args, config)
    known = load_baseline(baseline) if baseline else frozenset[str]()
    report = decide(report, config, known, date.today())
    _print(args, report, outputs)
    if args.comment:
        _comment(args, report)
    return report.exit_code(fail_on(args.fail_on) if args.fail_on else config.fail_on)


def _baseline(args: argparse.Namespace, config: Config) -> str:
    if args.write_baseline and not args.baseline:
        return str(args.write_baseline)
    if args.baseline or not config.baseline:
        return args.baseline or ""
    return str(Path(config.file).parent / config.baseline)


def _pair(
    args: argparse.Namespace, options: ReviewOptions, converter_for: ConverterFor | None
) -> Report:
    if not 1 <= len(args.sources) <= 2:
        raise CliFailure("pass OLD and NEW, or NEW alone, or --history PATH", EXIT_UNUSABLE)
    cluster = _cluster(args)
    sides = [asyncio.run(load_crds(source, cluster, args.exclude)) for source in args.sources]
    old, new = sides if len(sides) == 2 else (None, sides[0])
    problems = [problem for side in sides for problem in side.problems]
    admission = _admission(args, cluster, problems)
    report = review_documents(
        None if old is None else old.crds,
        new.crds,
        options,
        witnesses=not args.no_witnesses,
        objects=_objects(args, cluster, problems),
        converter_for=converter_for,
    )
    before = None if old is None else old.crds
    report = with_admission(report, before, new.crds, admission, options)
    report = without_unread(report, old=bool(old and old.problems), new=bool(new.problems))
    return with_presence(
        replace(report, problems=tuple(dict.fromkeys([*problems, *report.problems]))),
        {} if old is None else old.crds,
        new.crds,
        options,
        removed=args.removed or not whole_cluster(args.sources[0]),
    )


def _objects(
    args: argparse.Namespace, cluster: ReviewedCluster, problems: list[Problem]
) -> StoredObjects | None:
    """Return the source of stored objects; unreadable ones are added to ``problems``."""
    if not args.objects:
        return None
    if not str(args.objects).startswith("kube:"):
        local = asyncio.run(load_objects(args.objects))
        problems += local.problems
        return lambda crd: local.objects

    def live(crd: Document) -> list[Object]:
        found = asyncio.run(load_live_objects(crd.value, cluster))
        problems.extend(found.problems)
        return found.objects

    return live


def _admission(
    args: argparse.Namespace, cluster: ReviewedCluster, problems: list[Problem]
) -> list[Document]:
    if not args.admission:
        return []
    found = asyncio.run(load_admission(args.admission, cluster))
    problems += found.problems
    return found.documents


def _history(args: argparse.Namespace, options: ReviewOptions) -> Report:
    """Review each commit of a file against its predecessor."""
    commits, problem = history(args.history)
    problems = [problem] if problem is not None else []
    crds: list[CrdReview] = []
    before: dict[str, Document] = {}
    for commit in commits:
        side = asyncio.run(load_crds(f"git:{commit.revision}:{commit.path}"))
        found = review_documents(before, side.crds, options, witnesses=not args.no_witnesses)
        problems += [*side.problems, *found.problems]
        label = f"{commit.revision} {commit.title}"
        crds += [replace(crd, label=label) for crd in found.crds]
        before = side.crds or before
    return Report(crds=tuple(crds), problems=tuple(problems))


def _cluster(args: argparse.Namespace) -> ReviewedCluster:
    return ReviewedCluster(args.kubeconfig, args.context, args.qps)


@contextlib.contextmanager
def _converting(args: argparse.Namespace) -> Iterator[ConverterFor | None]:
    """Yield a function that returns the converter of a CRD; the webhook converts every CRD."""
    given = given_converters(args.converter)
    if given:

        def converter_for(crd: ReviewedCrd) -> Convert | None:
            found = converter_of(given, crd.name, crd.crd.names.kind)
            return None if found is None else _convert_with(InProcessResponder(found.built))

        yield converter_for
        return
    if not args.webhook:
        yield None
        return
    with contextlib.ExitStack() as stack:
        try:
            webhook = stack.enter_context(
                UrlResponder(args.webhook, ca=args.webhook_ca, insecure=args.webhook_insecure)
            )
        except (Uncheckable, OSError) as error:
            raise CliFailure(str(error), EXIT_UNUSABLE) from error
        yield lambda crd: _convert_with(webhook)


def _convert_with(responder: Responder) -> Convert:
    def convert(objects: list[Object], api_version: str) -> list[Object]:
        try:
            return list(responder.convert(objects, api_version))
        except (ConversionError, Uncheckable) as error:
            raise Unconvertible(str(error)) from error

    return convert


def _print(args: argparse.Namespace, report: Report, outputs: list[ReportOutput]) -> None:
    placed = in_repository(report, path_in_repository)

    def rendered(output: ReportOutput) -> str:
        if output.form == "text":
            return to_text(report, colour=_colour(args, output.file), details=args.details)
        if output.form == "markdown":
            summary = output.file and str(output.file) == os.environ.get("GITHUB_STEP_SUMMARY")
            most = SUMMARY if summary else COMMENT
            return to_markdown(placed, most=most, whole=_whole(outputs))
        return MACHINE[output.form](placed)

    write_outputs(outputs, rendered)
    if all(form != "text" for form, _ in outputs):
        for problem in report.problems:
            print(f"instar review: {problem}", file=sys.stderr)


def _whole(outputs: Sequence[ReportOutput], run: str = "") -> str:
    """Return the sentence that names the place of the complete report."""
    if run:
        return f"The whole report is in the [job's summary]({run})."
    files = [f"`{each.file}`" for each in outputs if each.form in ("html", "json") and each.file]
    return f"The whole report is in {files[0]}." if files else ""


def _comment(args: argparse.Namespace, report: Report) -> None:
    """Post the report; a comment that GitHub refuses does not change the verdict."""
    quiet = not report.findings and not report.problems
    try:
        request = pull_request()
        text = to_markdown(in_repository(report, path_in_repository), whole=_whole((), request.run))
        done = post(request, " ".join(args.sources[-1:]), text, quiet=quiet)
    except CommentFailed as error:
        print(f"instar review: the comment was not posted: {error}", file=sys.stderr)
    else:
        print(f"instar review: pull request comment: {done}", file=sys.stderr)


def _colour(args: argparse.Namespace, file: Path | None) -> bool:
    if args.color != "auto":
        return bool(args.color == "always")
    return file is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
