"""``instar webhook``: serves converters and admission handlers over TLS, or prints manifests.

``tools/sdk`` has the webhook server, certificates and manifests.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.cli.serving.process_memory import freeze_startup_objects, keep_freed_pages
from instar.cli.serving.webhook_reload import run_reloading
from instar.cli.shared.common_flags import add_cluster_arguments, add_workload_arguments
from instar.cli.shared.failure import CliFailure
from instar.tools.sdk.admission import Admission
from instar.tools.sdk.apply_configurations import configure
from instar.tools.sdk.asgi import DEFAULT_MAX_BODY, ConversionApp
from instar.tools.sdk.converter import BuiltConverter
from instar.tools.sdk.deployment import Deployment
from instar.tools.sdk.errors import ConverterDefinitionError
from instar.tools.sdk.loading import load_any
from instar.tools.sdk.serving import TlsFiles, listen, parse_listen, serve, stop_on_signals
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import KubeconfigError, load_access

if TYPE_CHECKING:
    from instar.tools.sdk.certificates import Issued

EXIT_FAILED = 1
EXIT_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "converter",
        metavar="CONVERTER",
        nargs="*",
        help="package.module:name of a converter or an admission, or a conversion.yaml",
    )
    parser.add_argument(
        "--listen",
        default=":9443",
        metavar="[HOST]:PORT",
        help="without a host every interface; port 0 is a free port",
    )
    parser.add_argument(
        "--reload", action="store_true", help="restart when a source below this folder changes"
    )
    parser.add_argument("--cert", type=Path, metavar="PEM", help="certificate chain")
    parser.add_argument("--key", type=Path, metavar="PEM", help="private key")
    parser.add_argument(
        *("--client-ca", "--client-ca-file"),
        type=Path,
        metavar="PEM",
        help="accept only clients with a certificate of this CA",
    )
    parser.add_argument(
        "--insecure-http",
        action="store_true",
        help="no TLS, for use behind a proxy that terminates it",
    )
    parser.add_argument(
        "--drain", type=float, default=0, metavar="SECONDS", help="keep serving after SIGTERM"
    )
    parser.add_argument(
        "--max-body",
        type=int,
        metavar="BYTES",
        help=f"largest review accepted (default: {DEFAULT_MAX_BODY})",
    )
    self_signed = parser.add_argument_group("without cert-manager")
    self_signed.add_argument(
        "--self-signed",
        metavar="NAME.NAMESPACE.svc",
        help="create a certificate, print its caBundle, and use it (or write --cert and --key)",
    )
    self_signed.add_argument(
        "--patch-crd",
        action="append",
        default=[],
        metavar="CRD",
        help="write the caBundle into this CRD",
    )
    self_signed.add_argument(
        "--configure",
        action="store_true",
        help="write the webhook configurations of admissions into the cluster, with the caBundle",
    )
    self_signed.add_argument(
        "--repoint",
        action="store_true",
        help="with --patch-crd: even if the CRD's webhook is at another address now",
    )
    self_signed.add_argument(
        "--service-port",
        type=int,
        metavar="PORT",
        help="written into the CRD: 443 for a service, the listening port for another host",
    )
    self_signed.add_argument(
        "--path", metavar="PATH", default="/convert", help="the path written into the CRD"
    )
    add_cluster_arguments(self_signed)
    manifests = parser.add_argument_group("manifests")
    manifests.add_argument(
        "--manifests", action="store_true", help="print Deployment, Service and Certificate"
    )
    image = "registry.example.com/conversion-webhook:latest"
    add_workload_arguments(manifests, "conversion-webhook", image)


def run(args: argparse.Namespace) -> int:
    try:
        if args.manifests:
            return _print_manifests(args)
        _check(args)
        if args.reload:
            return run_reloading(args.arguments, Path.cwd())
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_main(args))
    except (ConverterDefinitionError, ValueError) as error:
        raise CliFailure(str(error), EXIT_USAGE) from error
    except KubeconfigError as error:
        raise CliFailure(str(error), EXIT_USAGE) from error
    except (ApiError, OSError) as error:
        raise CliFailure(str(error), EXIT_FAILED) from error


def _print_manifests(args: argparse.Namespace) -> int:
    converters = tuple(args.converter) or ("package.module:converter",)
    deployment = Deployment(
        name=args.name,
        namespace=args.namespace,
        image=args.image,
        converters=converters,
        admissions=tuple(_admissions(args.converter)),
    )
    print(deployment.render(), end="")
    return 0


def _admissions(specs: list[str]) -> Iterator[Admission]:
    """Yield the admissions of modules that can be imported here; ``--manifests`` accepts others
    too.
    """
    for spec in specs:
        try:
            found = load_any(spec)
        except ConverterDefinitionError:
            continue
        if isinstance(found, Admission):
            yield found


def _check(args: argparse.Namespace) -> None:
    if bool(args.cert) != bool(args.key):
        raise ValueError("--cert and --key must be given together")
    if args.patch_crd and not args.self_signed:
        raise ValueError("--patch-crd needs --self-signed, which provides the caBundle")
    if args.configure and not (args.self_signed and args.converter):
        raise ValueError("--configure needs --self-signed, and an admission to configure")
    if args.insecure_http and (args.cert or args.self_signed or args.client_ca):
        raise ValueError("--insecure-http excludes every certificate option")
    if not args.converter and not args.self_signed:
        raise ValueError("name a converter: package.module:converter or conversion.yaml")
    if args.converter and not (args.cert or args.self_signed or args.insecure_http):
        raise ValueError("an API server calls webhooks over TLS only: give --cert and --key")
    if not args.converter and not args.cert:
        raise ValueError("nothing to serve: give a converter, or --cert and --key to write to")


async def _main(args: argparse.Namespace) -> int:
    served = [load_any(spec) for spec in args.converter]
    with tempfile.TemporaryDirectory() as folder:
        if args.self_signed:
            issued = _issue(args, Path(folder))
            print(issued.bundle, flush=True)
        if not args.converter:
            await _patch_crds(args, issued, parse_listen(args.listen)[1])
            return 0
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
        )
        await _serve(args, served, issued if args.self_signed else None)
    return 0


def _issue(args: argparse.Namespace, folder: Path) -> Issued:
    # Imported here: a webhook with given certificates does not need ``cryptography``.
    from instar.tools.sdk.certificates import self_signed

    issued = self_signed(args.self_signed)
    if args.cert is None:
        args.cert, args.key = folder / "tls.crt", folder / "tls.key"
    issued.write(args.cert, args.key)
    return issued


async def _patch_crds(args: argparse.Namespace, issued: Issued, listening: int) -> None:
    if not args.patch_crd:
        return
    # Imported here, as for the certificate itself.
    from instar.tools.sdk.crd_patch import AddressMismatch, conversion_stanza, patch_crd

    usual = 443 if args.self_signed.endswith(".svc") else listening
    port = args.service_port or usual
    stanza = conversion_stanza(args.self_signed, issued.bundle, path=args.path, port=port)
    async with Client(load_access(args.kubeconfig, args.context, qps=args.qps)) as client:
        for name in args.patch_crd:
            try:
                done = await patch_crd(client, name, stanza, repoint=args.repoint)
            except AddressMismatch as error:
                raise CliFailure(str(error), EXIT_FAILED) from error
            print(done, file=sys.stderr)


async def _serve(
    args: argparse.Namespace, served: list[BuiltConverter | Admission], issued: Issued | None
) -> None:
    tls = TlsFiles(cert=args.cert, key=args.key, client_ca=args.client_ca) if args.cert else None
    app = ConversionApp(
        [each for each in served if isinstance(each, BuiltConverter)],
        admissions=[each for each in served if isinstance(each, Admission)],
        max_body=args.max_body or DEFAULT_MAX_BODY,
    )
    if tls is not None:
        tls.context()  # report an unusable file before listening
    sock = listen(*parse_listen(args.listen))
    stop = asyncio.Event()
    stop_on_signals(stop)
    # Listen first, because the API server may call as soon as the CRD points here.
    if issued is not None:
        await _patch_crds(args, issued, sock.getsockname()[1])

    keep_freed_pages()

    def started() -> None:
        freeze_startup_objects()
        host, port = sock.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(
            f"listening on {'https' if tls else 'http'}://{shown}:{port}",
            file=sys.stderr,
            flush=True,
        )

    serving = asyncio.create_task(
        serve(app, sock, tls, stop=stop, drain=args.drain, started=started)
    )
    if issued is not None and args.configure:
        try:
            await _configure(args, served, issued, sock.getsockname()[1])
        except BaseException:
            stop.set()
            await serving
            raise
    await serving


async def _configure(
    args: argparse.Namespace,
    served: list[BuiltConverter | Admission],
    issued: Issued,
    listening: int,
) -> None:
    """Write the webhook configurations after the webhook listens, because the server calls
    it then.
    """
    # Imported here, as for the certificate itself.
    from instar.tools.sdk.crd_patch import client_config

    usual = 443 if args.self_signed.endswith(".svc") else listening
    port = args.service_port or usual

    def where(path: str) -> Object:
        return client_config(args.self_signed, issued.bundle, path=path, port=port)

    async with Client(load_access(args.kubeconfig, args.context, qps=args.qps)) as client:
        for each in served:
            documents = each.configurations(where) if isinstance(each, Admission) else []
            for document in documents:
                print(await configure(client, document), file=sys.stderr, flush=True)
