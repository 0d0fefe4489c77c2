"""``instar upgrade``: reviews, applies and migrates new CRDs on a cluster, or rolls them back.

``tools/upgrader`` runs the steps. Exit 0: the cluster matches the files; 1: refused, failed or
rolled back; 2: unusable input.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

from instar.base.json_values import Object
from instar.cli.shared.cluster_flags import with_client
from instar.cli.shared.common_flags import (
    add_cluster_arguments,
    add_output_argument,
    add_workload_arguments,
)
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.upgrade_objects import UpgradedObjects, fields_lost_by_release
from instar.kube.api.crd_codec import CrdDecodeError
from instar.kube.api.user_agents import MIGRATE
from instar.tools.migrator.census.version_census import exact_census
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.reviewer.config import Config, decide, fail_on
from instar.tools.reviewer.engine import severity_map
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.sources import load_config, load_crds
from instar.tools.upgrader.job_manifest import UpgradeJob, smallest_rules
from instar.tools.upgrader.report import UpgradeReport
from instar.tools.upgrader.review_gate import review_release, sample
from instar.tools.upgrader.upgrade import UpgradeOptions, upgrade
from instar.wire.client.client import Client

EXIT_UNUSABLE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", nargs="*", metavar="SOURCE", help="files and folders with CRDs")
    add_cluster_arguments(parser)
    add(
        "--plan",
        action="store_true",
        help="review, dry-run on the server, and print what would be done",
    )
    add(
        "--fail-on",
        choices=("error", "warning", "none"),
        help="refuse findings of this severity (default: the configuration's, or error)",
    )
    add(
        "--allow",
        action="append",
        default=[],
        metavar="RULE",
        help="ignore findings of this rule (instar review --rules lists them)",
    )
    add("--config", metavar="FILE", help="of the review, instead of the nearest instar.toml")
    add("--sample", type=int, default=500, metavar="N", help="objects to try under the new CRD")
    add(
        "--accept-change",
        action="append",
        default=[],
        metavar="PATH",
        help="let the migration change or drop this field, for example spec.legacy",
    )
    add("--no-rollback", action="store_true", help="leave a CRD as it is when a step fails")
    add("--wait", type=float, default=60.0, metavar="SECONDS", help="for a CRD to be established")
    add("--concurrency", type=int, default=16, metavar="N", help="objects at a time")
    add("--retries", type=int, default=5, metavar="N", help="per request, with back-off")
    add("--settle", type=float, default=10.0, metavar="SECONDS", help="as in instar migrate")
    add("--report", type=Path, metavar="FILE", help="write a JSON report")
    add_output_argument(parser, ("text", "json"))
    job = parser.add_argument_group("as a Job")
    job.add_argument("--manifests", action="store_true", help="print a Job with its permissions")
    job.add_argument(
        "--owner-references",
        action="store_true",
        help="allow the Job to change owner references in objects of every kind, for a release "
        "that drops a version",
    )
    job.add_argument(
        "--hook",
        choices=("none", "helm", "argocd"),
        default="none",
        help="add this tool's hook annotations, so that the Job runs before the release",
    )
    add_workload_arguments(job, "crd-upgrade", "registry.example.com/instar:latest")
    job.add_argument(
        "--config-map", default="", metavar="NAME", help="ConfigMap that holds the CRDs"
    )


def run(args: argparse.Namespace) -> int:
    if not args.source:
        raise CliFailure("name files or folders that contain CRDs", EXIT_UNUSABLE)
    crds = asyncio.run(_crds(args.source))
    if args.manifests:
        rules = smallest_rules(crds, owner_references=args.owner_references)
        job = UpgradeJob(args.name, args.namespace, args.image, rules, args.config_map, args.hook)
        print(job.render(), end="")
        return 0
    try:
        config = load_config(args.config)
        allowed = severity_map(dict.fromkeys(args.allow, "info"))
        config = replace(config, severities={**config.severities, **allowed})
    except ValueError as error:
        raise CliFailure(str(error), EXIT_UNUSABLE) from None
    report = with_client(
        args,
        lambda client: _upgrade(args, client, crds, config),
        user_agent=MIGRATE,
    )
    document = json.dumps(report.to_json(), indent=2)
    if args.report is not None:
        args.report.write_text(document + "\n", encoding="utf-8")
    print(document if args.output == "json" else "\n".join(report.lines()))
    return 0 if report.ok else 1


async def _crds(sources: list[str]) -> list[Object]:
    """Return every CRD of the sources as v1; the first problem is an error."""
    found: dict[str, Object] = {}
    for source in sources:
        loaded = await load_crds(source)
        if loaded.problems:
            raise CliFailure(str(loaded.problems[0]), EXIT_UNUSABLE)
        for name, document in loaded.crds.items():
            try:
                given = dict(document.value)
                if str(given.get("apiVersion", "")).endswith("/v1beta1"):
                    given = read_reviewed_crd(given).raw
                found[name] = given
            except CrdDecodeError as error:
                raise CliFailure(f"{name} is not a usable CRD: {error}", EXIT_UNUSABLE) from None
    return list(found.values())


async def _upgrade(
    args: argparse.Namespace, client: Client, crds: list[Object], config: Config
) -> UpgradeReport:
    options = UpgradeOptions(
        plan_only=args.plan,
        take_back=not args.no_rollback,
        wait=args.wait,
        settle=0.0 if await exact_census(client) is not None else args.settle,
        patience=RetryPolicy(attempts=args.retries + 1),
    )

    async def judge(old: Object | None, new: Object) -> tuple[bool, tuple[str, ...]]:
        return await _review_change(args, client, config, old, new)

    objects = UpgradedObjects(args, client)
    try:
        return await upgrade(client, crds, judge, objects.migrate, objects.put_back, options)
    finally:
        objects.close()


async def _review_change(
    args: argparse.Namespace, client: Client, config: Config, old: Object | None, new: Object
) -> tuple[bool, tuple[str, ...]]:
    objects = [] if old is None else await sample(client, old, args.sample)
    report = decide(review_release(old, new, objects, config), config, (), date.today())
    threshold = fail_on(args.fail_on) if args.fail_on else config.fail_on
    lines = tuple(
        f"{item.severity}: {item.rule}: {' '.join(filter(None, (item.version, item.path)))}: "
        f"{item.message}"
        for item in report.findings
        if item.severity in ("error", "warning")
    )
    problems = tuple(str(problem) for problem in report.problems)
    passed = report.exit_code(threshold) == 0
    if passed and old is not None:
        lost = await fields_lost_by_release(args, client, old, new)
        return not lost, (*problems, *lines, *lost)
    return passed, (*problems, *lines)
