"""``instar envtest``: creates a KUBEBUILDER_ASSETS folder, so that Go test suites run on instar.

``tools/envtest`` writes the folder.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

from instar.cli.shared.failure import CliFailure
from instar.tools.envtest.assets_folder import write_folder

_SERVER_MODULE = "httptools"
"""A module that only the extra ``instar[server]`` installs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Writes kube-apiserver, etcd and kubectl into DIR and prints the line that makes "
        "controller-runtime's envtest use them: eval $(instar envtest bin/instar), then go test."
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="created if it does not exist")
    parser.add_argument(
        "--kubectl", metavar="PATH", help="link this one (default: the one on the PATH, if any)"
    )
    parser.add_argument(
        "--stay",
        action="store_true",
        help="leave the servers running when the process that started them ends or is killed",
    )
    parser.add_argument(
        "--print",
        choices=["env", "path"],
        default="env",
        help="what to print: an export line for a shell, or the folder",
    )


def run(args: argparse.Namespace) -> int:
    if find_spec(_SERVER_MODULE) is None:
        # Fail now: a suite that starts the server later would show only a timeout.
        raise ModuleNotFoundError(name=_SERVER_MODULE)
    kubectl = args.kubectl or shutil.which("kubectl")
    if kubectl is not None and not Path(kubectl).is_file():
        raise CliFailure(f"--kubectl {kubectl}: no such file", code=2)
    folder = args.folder.absolute()
    try:
        write_folder(folder, kubectl, stay=args.stay)
    except OSError as error:
        raise CliFailure(f"{error.filename or folder}: {error.strerror}") from error
    shown = str(folder)
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(shown)}" if args.print == "env" else shown)
    return 0
