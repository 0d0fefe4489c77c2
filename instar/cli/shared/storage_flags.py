"""Flags for connecting to etcd or PostgreSQL, shared by all commands that open a store."""

from __future__ import annotations

import argparse
from pathlib import Path

from instar.base.text_files import read_text
from instar.cli.shared.failure import CliFailure
from instar.wire.storage.open import StorageOptions


def add_storage_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags; the first name of each flag of etcd is kube-apiserver's."""
    add = parser.add_argument_group("etcd").add_argument
    add("--etcd-cafile", "--etcd-ca", metavar="PEM", default="", help="CA of the etcd cluster")
    add("--etcd-certfile", "--etcd-cert", metavar="PEM", default="", help="our certificate for it")
    add("--etcd-keyfile", "--etcd-key", metavar="PEM", default="", help="its key")
    add("--etcd-username", metavar="NAME", default="", help="user, where etcd asks for one")
    add("--etcd-password-file", metavar="FILE", type=Path, help="first line is the password")
    add("--etcd-timeout", metavar="SECONDS", type=float, default=5.0, help="for one call")
    add = parser.add_argument_group("PostgreSQL").add_argument
    add(
        "--postgres-password-file",
        metavar="FILE",
        type=Path,
        help="first line is the password; read again at each connection",
    )
    add("--postgres-timeout", metavar="SECONDS", type=float, default=5.0, help="for one call")


def storage_options(args: argparse.Namespace) -> StorageOptions:
    return StorageOptions(
        etcd_cafile=args.etcd_cafile,
        etcd_certfile=args.etcd_certfile,
        etcd_keyfile=args.etcd_keyfile,
        etcd_username=args.etcd_username,
        etcd_password=_first_line(args.etcd_password_file),
        etcd_timeout=args.etcd_timeout,
        postgres_password_file=str(args.postgres_password_file or ""),
        postgres_timeout=args.postgres_timeout,
    )


def _first_line(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CliFailure(f"--etcd-password-file {path}: {error}") from error
    if not lines or not lines[0]:
        raise CliFailure(f"--etcd-password-file {path}: its first line is empty")
    return lines[0]
