"""Flag ``--controllers`` of ``instar serve``, with kube-controller-manager's syntax.

``cli/commands/serve.py`` adds and reads it. The names are in
``server/registry/controllers/controller_names.py``.
"""

from __future__ import annotations

import argparse
import logging

from instar.cli.shared.failure import CliFailure
from instar.server.registry.controllers.controller_names import (
    CONTROLLERS_HERE,
    UnknownController,
    absent_controllers,
    chosen_controllers,
)

log = logging.getLogger(__name__)


def add_controller_arguments(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--controllers",
        metavar="NAMES",
        action="append",
        help="which controllers of kube-controller-manager run: * (default) is all, NAME one, "
        "-NAME all but one, nothing none. Without this flag they stand still while a real "
        "kube-controller-manager holds its lease. Known: " + ", ".join(sorted(CONTROLLERS_HERE)),
    )


def controllers(args: argparse.Namespace) -> frozenset[str]:
    given = ["*"] if args.controllers is None else args.controllers
    words = [word.strip() for text in given for word in text.split(",") if word.strip()]
    try:
        chosen = chosen_controllers(words)
    except UnknownController as error:
        raise CliFailure(f"--controllers: {error}", code=2) from error
    for name in absent_controllers(words):
        log.warning("controller %s is not part of this server", name)
    return chosen
