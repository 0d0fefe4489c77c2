"""``instar serve``: turns flags into ``Settings``, runs the server, stops it on signals.

``server/lifecycle/lifetime.py`` is the server, ``cli/serving`` has groups of flags and the workers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import gc
import logging
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

from instar import __version__
from instar.base.escaping import shell_word
from instar.base.parent_watch import wait_for_orphaning
from instar.cli.serving import admission_flags, background, snapshot_store
from instar.cli.serving.aggregation_flags import aggregation_settings, kubelet_settings
from instar.cli.serving.authentication_flags import identity_settings
from instar.cli.serving.cluster_flags import cluster_settings
from instar.cli.serving.controller_flags import controllers
from instar.cli.serving.converter_flags import load_converters, why_unused
from instar.cli.serving.feature_gate_flags import CBOR, WATCH_LIST, gates_of, plugins_off
from instar.cli.serving.log_format import set_up_logging
from instar.cli.serving.process_memory import freeze_startup_objects, keep_freed_pages
from instar.cli.serving.runtime_config import served_versions
from instar.cli.serving.security_flags import guard_settings
from instar.cli.serving.serve_flags import add_arguments as add_arguments
from instar.cli.serving.workers import receive_settings, with_workers
from instar.cli.shared.failure import WRONG_PATH, CliFailure
from instar.cli.shared.storage_flags import storage_options
from instar.kube.api.crd import Crd
from instar.server.http.handler_types import Front
from instar.server.lifecycle.lifetime import RunningServer, running
from instar.server.lifecycle.metrics_merge import share_worker_metrics
from instar.server.settings import Settings
from instar.tools.console.settings import OidcSettings
from instar.tools.console.setup import console_front
from instar.wire.storage.open import is_shared, without_password
from instar.wire.storage.store import (
    RemotelyOwnedStore,
    Store,
    StoreError,
    UnusableStore,
    unwrapped_store,
)

log = logging.getLogger("instar.serve")
_NOT_BOUND = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)
"""Errors of an address that cannot be bound; errors of files carry a file name."""


def run(args: argparse.Namespace) -> int:
    args.parent = os.getppid()
    background.settle(args)
    if args.stop:
        return background.stop(args.pid_file, args.wait)
    if args.background and args.ready_fd is None:
        return background.start(args)
    if args.worker_of is not None:
        if not _has_owner():
            raise CliFailure("--worker-of is what --workers starts its workers with", code=2)
        if not receive_settings(args, sys.stdin.fileno()):
            return 1
    snapshot_store.set_copy_defaults(args)
    set_up_logging(args.log, args.verbose)  # first, so that warnings about flags have its form
    try:
        return _run(args)
    except CliFailure as failure:
        if args.log != "json":
            raise
        log.error("cannot serve: %s", failure)  # a collector of JSON lines gets no other line
        return failure.code


def _run(args: argparse.Namespace) -> int:
    settings = _settings(args)
    gc.disable()  # until the server is ready, because starting creates much and drops little
    keep_freed_pages()
    pid_file = None if args.worker_of is not None else args.pid_file
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        with background.claim(pid_file):
            return runner.run(_serve(settings, args))
    except KeyboardInterrupt:
        return 0
    finally:
        if not args.owns_process:  # else the process ends here: nothing is waited for
            runner.close()


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
    local = not is_shared(args.storage)
    gates = gates_of(args)
    return Settings(
        host=host.strip("[]") or "0.0.0.0",
        port=int(port),
        advertise_address=args.advertise_address or "",
        shared_port=args.worker_of,
        worker=worker,
        storage=f"peer:{args.worker_of}" if worker and local else args.storage,
        storage_options=storage_options(args),
        fill=None if worker else snapshot_store.store_filler(args),
        values=args.values,
        pack_values=args.pack_values,
        read_only=args.read_only,
        kubeconfig=None if worker else args.kubeconfig,
        cert_dir=args.cert_dir or _default_cert_dir(args.storage),
        strict_namespaces=args.namespaces == "strict",
        controllers=controllers(args),
        yields_to_manager=args.controllers is None,
        versions=served_versions(args.runtime_config),
        collect_garbage=args.gc == "on",
        service_cluster_ip_range=_network(args.service_cluster_ip_range),
        bootstrap_objects=args.bootstrap_objects == "on",
        rescue_deletes=args.rescue_deletes,
        history_seconds=args.history,
        history_bytes=args.history_size,
        services=tuple(args.service),
        converters=load_converters(args.converter),
        admissions=admission_flags.modules(args.admission_module),
        admission_plugins=admission_flags.plugins(args) - plugins_off(gates),
        watch_list=gates.get(WATCH_LIST, True),
        cbor=gates.get(CBOR, False),
        review=_review(args.review),
        deny_breaking=args.review == "deny",
        webhook_client_cert=args.webhook_client_cert,
        webhook_client_key=args.webhook_client_key,
        webhook_timeout=args.webhook_timeout,
        webhook_timeouts=tuple(args.webhook_timeout_for),
        conversion_cache=not args.no_conversion_cache,
        front=_console(args),
        convert_ahead=args.convert_ahead == "on",
        extra_names=tuple(args.tls_name),
        aggregation=aggregation_settings(args),
        kubelets=kubelet_settings(args),
        cluster=cluster_settings(args),
        **identity_settings(args),
        **guard_settings(args),
    )


def _console(args: argparse.Namespace) -> Front | None:
    return console_front(_oidc(args), read_only=args.read_only) if args.console == "on" else None


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
    """Return whether standard input is a pipe from a parent process (or a socket, as
    asyncio uses).
    """
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
            problem = why_unused(settings.converters, _custom_crds(server))
            if problem is not None:
                raise CliFailure(problem)
            freeze_startup_objects()
            _announce(server, settings, args)
            if args.worker_of:
                await _stop_when_store_is_lost(server.machinery.backend.store)
            await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    serving = loop.create_task(serve())

    def stop(number: signal.Signals) -> None:
        if not args.worker_of:
            log.info("%s: stopping", number.name)
        serving.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        # Also while it waits for a storage that is not up.
        loop.add_signal_handler(number, stop, number)
    if args.worker_of:
        # The pipe ends with the parent process, however that ends.
        once_readable(loop, sys.stdin.fileno(), serving.cancel)
    if args.exit_with_parent:
        watching = loop.create_task(wait_for_orphaning(args.parent, os.getppid))
        watching.add_done_callback(lambda _: serving.cancel())
    try:
        await serving
    except asyncio.CancelledError:
        if not args.worker_of:
            log.info("stopped")
        return 0
    except (StoreError, OSError, ValueError) as error:
        raise CliFailure(_failure_text(error, settings), _failure_code(error)) from error
    return 0


def _announce(server: RunningServer, settings: Settings, args: argparse.Namespace) -> None:
    """Log version, address and store, and print how to reach the server."""
    ready = _ready_text(settings, server)
    if args.worker_of:
        background.announce(ready, None)
        return
    store = without_password(settings.storage)
    facts = {
        "version": __version__,
        "url": server.url,
        "storage": store,
        "pid": os.getpid(),
        "workers": args.workers,
        "readOnly": args.read_only,
    }
    mode = ", read-only" if args.read_only else ""
    shared = f" by {args.workers} processes" if args.workers > 1 else ""
    log.info(
        "instar %s serves %s%s%s, storage %s",
        *(__version__, server.url, shared, mode, store),
        extra={"fields": facts},
    )
    if args.log == "json":
        log.info(ready)
    background.announce(ready, args.ready_fd, quiet=args.log == "json")


def _ready_text(settings: Settings, server: RunningServer) -> str:
    if settings.cluster is not None:
        groups = ", ".join(settings.cluster.groups) or "labelled CRDs"
        return f"instar is ready to be routed to: {groups} at {server.url}"
    return f"instar is ready: kubectl --kubeconfig {shell_word(str(server.kubeconfig))} get crds"


def _custom_crds(server: RunningServer) -> list[Crd]:
    return [resource.crd for resource in server.machinery.catalog.customs()]


def once_readable(loop: asyncio.AbstractEventLoop, file: int, then: Callable[[], object]) -> None:
    """Call ``then`` once: the end of a pipe stays readable, and a stop must not be interrupted."""

    def ended() -> None:
        loop.remove_reader(file)
        then()

    loop.add_reader(file, ended)


async def _stop_when_store_is_lost(store: Store) -> None:
    """Return when a worker has lost its store, so that it ends; the first process starts
    another.
    """
    owner = unwrapped_store(store)
    if isinstance(owner, RemotelyOwnedStore):
        await owner.lost()


def _failure_code(error: Exception) -> int:
    """Return 2 for a file or URL that a flag names wrongly, 1 for anything else."""
    if isinstance(error, OSError):
        return 2 if error.filename is not None and error.errno in WRONG_PATH else 1
    return 2 if isinstance(error, UnusableStore | ValueError) else 1


def _failure_text(error: Exception, settings: Settings) -> str:
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in _NOT_BOUND and error.filename is None:
        return f"cannot listen on {settings.host}:{settings.port}: {os.strerror(error.errno)}"
    return str(error)
