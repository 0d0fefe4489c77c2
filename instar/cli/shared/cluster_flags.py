"""Which cluster a command talks to: the same flags and one-line failures everywhere."""

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
    """Run ``work`` against the chosen cluster; its ``ApiError`` becomes one line."""

    async def connected() -> T:
        access = load_access(args.kubeconfig, args.context)
        try:
            async with Client(access, **options) as client:
                return await work(client)
        except (Unauthorized, Forbidden, ServiceUnavailable) as error:
            raise CliFailure(f"{error} ({access})") from error

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(connected())
    except (KubeconfigError, ApiError) as error:
        raise CliFailure(str(error)) from error


def who_and_where() -> str:
    """For whoever reads a report later. In a container nobody may have a name."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):
        who = f"uid {os.getuid()}"
    return f"{who}@{socket.gethostname()}"


async def read_crds(client: Client, names: Iterable[str]) -> list[dict[str, Any]]:
    """The named CRDs, or all of them when none is named."""
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
            raise CliFailure(f"there is no CustomResourceDefinition {name}") from None
    return crds
