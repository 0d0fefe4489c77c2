"""``instar serve``: turns flags into ``Settings``, runs the server, stops it on signals.

``server/lifecycle/lifetime.py`` is the server, ``cli/serving`` has groups of flags and the workers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import uvloop

from instar.base import limits
from instar.cli.serving import admission_flags, snapshot_store
from instar.cli.serving.authentication_flags import add_identity_arguments, identity_settings
from instar.cli.serving.controller_flags import add_controller_arguments, controllers
from instar.cli.serving.converter_flags import add_conversion_arguments, load_converters, unused
from instar.cli.serving.log_format import FORMS, set_up_logging
from instar.cli.serving.parent_watch import wait_for_orphaning
from instar.cli.serving.process_memory import freeze_startup_objects, keep_pages
from instar.cli.serving.runtime_config import add_runtime_arguments, switched_off
from instar.cli.serving.security_flags import add_guard_arguments, guard_settings
from instar.cli.serving.workers import take_orders, with_workers
from instar.cli.shared.common_flags import seconds, size
from instar.cli.shared.etcd_flags import add_etcd_arguments, storage_options
from instar.cli.shared.failure import CliFailure
from instar.kube.api.crd import Crd
from instar.server.lifecycle.lifetime import RunningServer, running
from instar.server.lifecycle.metrics_merge import share_worker_metrics
from instar.server.settings import Settings
from instar.tools.console.settings import OidcSettings
from instar.tools.console.setup import before
from instar.wire.storage.store import RemotelyOwnedStore, Store, StoreError, bare

_NOT_BOUND = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)
"""Errors of an address that cannot be bound; errors of files carry a file name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--listen",
        metavar="[HOST]:PORT",
        default="127.0.0.1:6443",
        help="without a host every interface; port 0 is a free port",
    )
    add(
        "--storage",
        metavar="URL",
        help="sqlite:PATH, memory: or etcd://HOST:PORT,…/PREFIX (default: sqlite:instar.db, "
        "memory: with --from)",
    )
    snapshot_store.add_arguments(parser)
    add("--kubeconfig", metavar="FILE", type=Path, help="write a kubeconfig here when ready")
    add(
        "--workers",
        metavar="N",
        type=int,
        default=1,
        help="number of server processes on the port; they share objects in memory",
    )
    add(
        "--values",
        choices=["memory", "disk"],
        default="memory",
        help="where objects are kept: in memory, or on disk with nothing but keys, revisions and "
        "labels in memory (for very many of them; needs a SQLite file, one process)",
    )
    add("--worker-of", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    add(
        "--exit-with-parent",
        action="store_true",
        help="stop when the process that started this one is gone, also if it was killed",
    )
    add("--cert-dir", metavar="DIR", type=Path, help="keep CA, certificates and token here")
    add(
        "--namespaces",
        choices=["strict", "open"],
        default="strict",
        help="strict: an object needs an existing namespace; open: any namespace name is accepted",
    )
    add_conversion_arguments(parser)
    admission_flags.add_arguments(parser)
    add_etcd_arguments(parser)
    add(
        "--history",
        metavar="DURATION",
        type=seconds,
        default=300.0,
        help="how long overwritten and deleted objects stay readable: 300, 90m, 24h, 7d "
        "(default: 5m)",
    )
    add(
        "--history-size",
        metavar="SIZE",
        type=size,
        default=limits.HISTORY_BYTES,
        help="size limit of that history, whatever its age: 64Mi, 2Gi (default: 1Gi)",
    )
    add("--tls-name", metavar="NAME", action="append", default=[], help="further certificate names")
    add(
        "--review",
        choices=["off", "warn", "deny"],
        default="off",
        help="review CRD updates: warn about breaking changes, or refuse them",
    )
    add(
        "--console",
        choices=["on", "off"],
        default="on",
        help="the web console at /console (off: nothing is served there)",
    )
    add(
        "--console-oidc-secret-file",
        metavar="FILE",
        type=Path,
        help="secret of the client --oidc-client-id, if it has one",
    )
    add(
        "--console-oidc-scopes",
        metavar="NAMES",
        default="openid profile email",
        help="scopes that the console requests from --oidc-issuer-url, separated by spaces",
    )
    add(
        "--rescue-deletes",
        action="store_true",
        help="allow deleting objects that cannot be converted (upstream keeps them)",
    )
    add(
        "--service-cluster-ip-range",
        metavar="CIDR",
        default="10.0.0.0/24",
        help="network of the cluster IPs of Services",
    )
    add_controller_arguments(parser)
    add_runtime_arguments(parser)
    add(
        "--gc",
        choices=["on", "off"],
        help="delete objects that have lost all their owners (off: like an API server without "
        "controllers; default: on, off with --from)",
    )
    add(
        "--furniture",
        choices=["on", "off"],
        help="create what every cluster has: accounts, services, classes (off: an empty store; "
        "default: on, off with --from)",
    )
    add_identity_arguments(parser)
    add_guard_arguments(parser)
    add("--log", choices=FORMS, default="text", help="form of log lines")
    add("--verbose", "-v", action="store_true", help="log every request")


def run(args: argparse.Namespace) -> int:
    args.parent = os.getppid()
    if args.worker_of is not None:
        if not _has_owner():
            raise CliFailure("--worker-of is what --workers starts its workers with", code=2)
        if not take_orders(args, sys.stdin.fileno()):
            return 1
    snapshot_store.choose(args)
    settings = _settings(args)
    gc.disable()  # until the server is ready, because starting creates much and drops little
    keep_pages()
    set_up_logging(args.log, args.verbose)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(settings, args))
    except KeyboardInterrupt:
        return 0


def _settings(args: argparse.Namespace) -> Settings:
    host, colon, port = args.listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise CliFailure(f"--listen {args.listen}: expected [HOST]:PORT", code=2)
    if args.workers < 1:
        raise CliFailure(f"--workers {args.workers}: expected 1 or more", code=2)
    if args.values == "disk" and (args.workers > 1 or not args.storage.startswith("sqlite:")):
        raise CliFailure(
            "--values disk: only with --storage sqlite:PATH and without --workers", code=2
        )
    worker = args.worker_of is not None
    local = not args.storage.startswith("etcd:")
    return Settings(
        host=host.strip("[]") or "0.0.0.0",
        port=int(port),
        shared_port=args.worker_of,
        worker=worker,
        storage=f"peer:{args.worker_of}" if worker and local else args.storage,
        storage_options=storage_options(args),
        fill=None if worker else snapshot_store.filling(args),
        values=args.values,
        read_only=args.read_only,
        kubeconfig=None if worker else args.kubeconfig,
        cert_dir=args.cert_dir or _default_cert_dir(args.storage),
        strict_namespaces=args.namespaces == "strict",
        controllers=controllers(args),
        versions_off=switched_off(args.runtime_config),
        collect_garbage=args.gc == "on",
        service_cluster_ip_range=_network(args.service_cluster_ip_range),
        furniture=args.furniture == "on",
        rescue_deletes=args.rescue_deletes,
        history_seconds=args.history,
        history_bytes=args.history_size,
        services=tuple(args.service),
        converters=load_converters(args.converter),
        admissions=admission_flags.modules(args.admission_module),
        admission_plugins=admission_flags.plugins(args),
        review=_review(args.review),
        deny_breaking=args.review == "deny",
        webhook_client_cert=args.webhook_client_cert,
        webhook_client_key=args.webhook_client_key,
        webhook_timeout=args.webhook_timeout,
        webhook_timeouts=tuple(args.webhook_timeout_for),
        conversion_cache=not args.no_conversion_cache,
        front=before(_oidc(args)) if args.console == "on" else None,
        convert_ahead=args.convert_ahead == "on",
        extra_names=tuple(args.tls_name),
        **identity_settings(args),
        **guard_settings(args),
    )


def _oidc(args: argparse.Namespace) -> OidcSettings | None:
    """Return the console's sign-in settings: the issuer of the OIDC flags."""
    if not args.oidc_issuer_url or not args.oidc_client_id:
        return None
    return OidcSettings(
        issuer=args.oidc_issuer_url,
        client=args.oidc_client_id,
        authority=args.oidc_ca_file,
        secret=args.console_oidc_secret_file,
        scopes=args.console_oidc_scopes,
    )


def _network(text: str) -> str:
    try:
        return str(IPv4Network(text))
    except ValueError as error:
        raise CliFailure(f"--service-cluster-ip-range {text}: {error}", code=2) from error


def _has_owner() -> bool:
    """Return whether standard input is a pipe of a parent (or a socket, as asyncio uses)."""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _review(mode: str) -> Callable[[dict[str, Any], dict[str, Any]], list[str]] | None:
    if mode == "off":
        return None
    # Imported here: the reviewer with all its rules is as large as the server.
    from instar.tools.reviewer.reviewing import breaking

    return breaking


def _default_cert_dir(storage: str) -> Path | None:
    """Return a folder beside the database file, so that a restart keeps its CA and token."""
    if not storage.startswith("sqlite:"):
        return None
    return Path(storage.removeprefix("sqlite:") + ".pki").absolute()


async def _serve(settings: Settings, args: argparse.Namespace) -> int:
    async def serve() -> None:
        async with contextlib.AsyncExitStack() as stack:
            if args.workers > 1:
                server = await stack.enter_async_context(with_workers(settings, args))
            else:
                server = await stack.enter_async_context(running(settings))
            if args.worker_of:
                numbers = share_worker_metrics(server.machinery.metrics, args.worker_of)
                await stack.enter_async_context(numbers)
            problem = unused(settings.converters, _customs(server))
            if problem is not None:
                raise CliFailure(problem)
            freeze_startup_objects()
            print(f"instar is ready: kubectl --kubeconfig {server.kubeconfig} get crds", flush=True)
            if args.worker_of:
                await _until_its_store_is_lost(server.machinery.backend.store)
            await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    serving = loop.create_task(serve())
    for number in (signal.SIGTERM, signal.SIGINT):
        # Also while it waits for a storage that is not up.
        loop.add_signal_handler(number, serving.cancel)
    if args.worker_of:
        # The pipe ends with the parent process, however that ends.
        once_readable(loop, sys.stdin.fileno(), serving.cancel)
    if args.exit_with_parent:
        watching = loop.create_task(wait_for_orphaning(args.parent, os.getppid))
        watching.add_done_callback(lambda _: serving.cancel())
    try:
        await serving
    except asyncio.CancelledError:
        return 0
    except (StoreError, OSError, ValueError) as error:
        raise CliFailure(_failure_text(error, settings)) from error
    return 0


def _customs(server: RunningServer) -> list[Crd]:
    return [resource.crd for resource in server.machinery.catalog.customs()]


def once_readable(loop: asyncio.AbstractEventLoop, file: int, then: Callable[[], object]) -> None:
    """Call ``then`` once: the end of a pipe stays readable, and a stop must not be interrupted."""

    def ended() -> None:
        loop.remove_reader(file)
        then()

    loop.add_reader(file, ended)


async def _until_its_store_is_lost(store: Store) -> None:
    """End a worker when its first process is gone, because that one starts another."""
    owner = bare(store)
    if isinstance(owner, RemotelyOwnedStore):
        await owner.lost()


def _failure_text(error: Exception, settings: Settings) -> str:
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in _NOT_BOUND and error.filename is None:
        return f"cannot listen on {settings.host}:{settings.port}: {os.strerror(error.errno)}"
    return str(error)
