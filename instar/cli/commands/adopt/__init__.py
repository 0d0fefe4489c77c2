"""``instar adopt``: moves an API group with its objects from a cluster to instar, and back.

``tools/adopter`` does the work. Exit 0: moved, and every object is as it was; 1: something is in
the way, or the move stopped; 2: unusable input. The flags are in ``flags.py``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from instar.cli.commands.adopt.flags import add_arguments as add_arguments
from instar.cli.commands.adopt.flags import ca_bundle, move_options
from instar.cli.shared.cluster_flags import with_client
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.storage_flags import storage_options
from instar.tools.adopter.adopt import adopt, undo
from instar.tools.adopter.api_servers import api_servers
from instar.tools.adopter.cluster import MovedCluster
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.etcd_objects import EtcdObjects
from instar.tools.adopter.etcd_removal import free_etcd
from instar.tools.adopter.journal import MoveJournal
from instar.tools.adopter.move import GroupMove
from instar.tools.adopter.preflight import MovePlan, look
from instar.tools.adopter.preparation import MoveRequest, prepare
from instar.tools.adopter.return_group import give_back
from instar.wire.client.client import Client
from instar.wire.storage.open import open_store
from instar.wire.storage.store import StoreError

_AGENT = "instar-adopt"


def run(args: argparse.Namespace) -> int:
    if args.etcd and not args.etcd.startswith("etcd://"):
        raise CliFailure(f"--etcd {args.etcd}: not of the form etcd://HOST:PORT", code=2)
    if args.abort and args.back:
        raise CliFailure("--abort: not with --return", code=2)
    if args.add_version and (args.abort or args.back):
        raise CliFailure("--add-version: not with --return or --abort", code=2)
    if args.free_etcd and (args.abort or args.back or args.add_version):
        raise CliFailure("--free-etcd: not with --return, --abort or --add-version", code=2)
    if args.free_etcd and not args.etcd:
        raise CliFailure("--free-etcd: needs --etcd", code=2)
    try:
        return with_client(args, lambda client: _run(args, client), user_agent=_AGENT)
    except (AdoptError, StoreError) as error:
        raise CliFailure(str(error)) from error


async def _run(args: argparse.Namespace, client: Client) -> int:
    async with AsyncExitStack() as stack:
        servers = await api_servers(client, args.api_server, _AGENT)
        for each in servers:
            stack.push_async_callback(each.close)
        path = args.journal or Path(f"adopt-{args.group}.json")
        journal = MoveJournal(None if args.plan else path, args.group, client.access.server)
        stack.callback(journal.close)
        asked = MoveRequest(args.group, args.instar_service, ca_bundle(args), changes=not args.plan)
        cluster = MovedCluster(client, servers)
        move = await prepare(cluster, asked, journal, move_options(args), _tell(args))
        if args.abort:
            await undo(move)
            return 0
        etcd = await _etcd(args, move, stack) if args.etcd else None
        if args.free_etcd:
            assert etcd is not None
            await free_etcd(move, etcd, only_plan=args.plan)
            return 0
        plan = await look(move, back=args.back)
        if args.plan or not plan.ok:
            _show(args, plan, {})
            return 0 if plan.ok else 1
        wrong = await (give_back(move, etcd) if args.back else adopt(move))
        _show(args, plan, {**move.figures, "differs": wrong})
        return 1 if wrong else 0


async def _etcd(args: argparse.Namespace, move: GroupMove, stack: AsyncExitStack) -> EtcdObjects:
    store = await open_store(args.etcd, storage_options(args))
    stack.push_async_callback(store.close)
    etcd = EtcdObjects(store)
    await etcd.must_be_of(move.group)
    return etcd


def _tell(args: argparse.Namespace) -> Callable[[str], None]:
    stream = sys.stderr if args.output == "json" else sys.stdout
    return lambda text: print(text, file=stream, flush=True)


def _show(args: argparse.Namespace, plan: MovePlan, figures: dict[str, object]) -> None:
    if args.output == "json":
        print(json.dumps({"plan": plan.to_json(), **figures}, indent=2))
        return
    if not figures:
        print("\n".join(plan.lines()))
    elif "frozenSeconds" in figures:
        print(f"writes were refused for {figures['frozenSeconds']} s")
