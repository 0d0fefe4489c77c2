"""Runs a command's coroutine with a client of the cluster that its flags choose, and turns API
errors into failures of one line.

Called by the commands that send requests to a cluster. The flags themselves are in
``common_flags.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import uvloop

from instar.base.errors import ApiError, Forbidden, NotFound, ServiceUnavailable, Unauthorized
from instar.cli.shared.common_flags import add_cluster_arguments as add_cluster_arguments
from instar.cli.shared.failure import CliFailure
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import KubeconfigError, load_access
from instar.wire.client.paths import crd_path

T = TypeVar("T")


def with_client(
    args: argparse.Namespace, work: Callable[[Client], Awaitable[T]], **options: Any
) -> T:
    """Run ``work`` with a client of the chosen cluster; its ``ApiError`` becomes a one-line
    failure.
    """

    async def connected() -> T:
        access = load_access(args.kubeconfig, args.context, qps=getattr(args, "qps", 0))
        try:
            async with Client(access, **options) as client:
                return await work(client)
        except (Unauthorized, Forbidden, ServiceUnavailable) as error:
            raise CliFailure(f"{error} ({access})") from error

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(connected())
    except KubeconfigError as error:
        raise CliFailure(str(error), code=2) from error
    except ApiError as error:
        raise CliFailure(str(error)) from error


def user_and_host() -> str:
    """Return user@host for reports; in a container the user may have no name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


async def read_crds(client: Client, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the named CRDs, or all of them when none is named."""
    wanted = list(names)
    if not wanted:
        found: list[dict[str, Any]] = []
        async for page in client.pages(crd_path(), limit=100):
            found += page.get("items") or []
        return found
    crds = []
    for name in wanted:
        try:
            crds.append(await client.get(crd_path(name)))
        except NotFound:
            raise CliFailure(f"CustomResourceDefinition {name} not found") from None
    return crds
