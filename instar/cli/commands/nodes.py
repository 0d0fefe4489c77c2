"""``instar nodes``: runs simulated nodes on a cluster; ``tools/nodes`` does the work."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

import yaml

from instar.base.plurals import counted
from instar.base.text_files import read_text
from instar.cli.shared.cluster_flags import with_client
from instar.cli.shared.common_flags import add_cluster_arguments
from instar.cli.shared.failure import CliFailure
from instar.kube.quantities import canonical_quantity
from instar.tools.nodes.node_objects import node_names
from instar.tools.nodes.pod_rules import DEFAULT_RULES, PodRule, RuleError, read_rules
from instar.tools.nodes.simulation import ForeignNode, NodeSettings, NodeSimulation
from instar.wire.client.client import Client

_MOST_NODES = 10_000
_CAPACITY = "cpu=8,memory=32Gi,pods=110"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_cluster_arguments(parser)
    add("--count", type=int, default=1, metavar="N", help="number of nodes (default: 1)")
    add("--prefix", default="node-", metavar="TEXT", help="start of names (default: node-)")
    add(
        "--capacity",
        default=_CAPACITY,
        metavar="NAME=QUANTITY,…",
        help=f"what each node offers (default: {_CAPACITY})",
    )
    add(
        "--pod-rules",
        type=Path,
        metavar="YAML",
        help="how pods change their phase (default: pending pods run after 200 ms, pods of Jobs "
        "succeed one second later)",
    )
    add(
        "--keep",
        action="store_true",
        help="leave the nodes when the command ends (default: delete them)",
    )


def run(args: argparse.Namespace) -> int:
    if not 0 < args.count <= _MOST_NODES:
        raise CliFailure(f"--count {args.count}: expected 1 to {_MOST_NODES}", code=2)
    settings = NodeSettings(
        names=node_names(args.prefix, args.count),
        capacity=_capacity(args.capacity),
        rules=_rules(args.pod_rules),
    )
    return with_client(args, lambda client: _simulate(client, settings, args.keep))


async def _simulate(client: Client, settings: NodeSettings, keep: bool) -> int:
    simulation = NodeSimulation(client, settings)
    try:
        await simulation.register()
    except ForeignNode as error:
        raise CliFailure(str(error)) from error
    print(f"{counted(len(settings.names), 'node')} ready; Ctrl-C ends it", flush=True)
    running = asyncio.ensure_future(simulation.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        pass
    finally:
        if not keep:
            await simulation.remove()
    return 0


def _capacity(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, quantity = part.strip().partition("=")
        try:
            found[name] = canonical_quantity(quantity)
        except ValueError:
            quantity = ""
        if not name or not equals or not quantity:
            raise CliFailure(f"--capacity {part.strip()}: expected NAME=QUANTITY", code=2)
    return found


def _rules(path: Path | None) -> tuple[PodRule, ...]:
    try:
        text = DEFAULT_RULES if path is None else read_text(path)
        return read_rules(yaml.safe_load(text))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RuleError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CliFailure(f"--pod-rules {path}: {reason}", code=2) from error
