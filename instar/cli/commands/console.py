"""``instar console``: serves the web console for any cluster, on this machine for one browser.

``tools/console/hosts/kubeconfig.py`` is the server.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import signal
from ipaddress import ip_address

from instar.cli.shared.cluster_flags import with_client
from instar.cli.shared.common_flags import add_cluster_arguments
from instar.cli.shared.failure import CliFailure
from instar.kube.api.user_agents import CONSOLE
from instar.tools.console.listening import serving
from instar.wire.client.client import Client

_BIND_ERRORS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser, paced=False)
    parser.add_argument(
        "--listen",
        metavar="[HOST]:PORT",
        default="127.0.0.1:8088",
        help="an address of this machine only; port 0 is a free one (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    host, port = _parse_listen(args.listen)
    return with_client(args, lambda client: _serve(args, client, host, port), user_agent=CONSOLE)


async def _serve(args: argparse.Namespace, client: Client, host: str, port: int) -> int:
    await client.get("/version")  # report an unreachable cluster before a browser opens
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        async with serving(client, host, port, _show, context=args.context):
            await ended.wait()
    except OSError as error:
        if error.errno not in _BIND_ERRORS:
            raise
        text = f"cannot listen on {args.listen}: {os.strerror(error.errno or 0)}"
        raise CliFailure(text) from error
    return 0


def _show(url: str) -> None:
    print(f"instar console: {url} (the link works in one browser)", flush=True)


def _parse_listen(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise CliFailure(f"--listen {text}: expected [HOST]:PORT", code=2)
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise CliFailure(
            f"--listen {text}: other machines could use your credentials; give an address of this "
            "machine such as 127.0.0.1",
            code=2,
        )
    return host, int(port)
