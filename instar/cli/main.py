"""Entry point of ``instar``: finds the subcommand, imports only its module, maps errors to exit
codes.

Called by the console scripts ``instar`` and ``kubectl-instar``. ``cli/shared/exit_codes.py``
documents the codes.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from instar import __version__
from instar.cli.shared.exit_codes import exit_code_help
from instar.cli.shared.failure import WRONG_PATH, CliFailure
from instar.cli.shared.help_format import Parser
from instar.cli.shared.streams import prepare_streams

GROUPS: Mapping[str, Mapping[str, str]] = {
    "run": {
        "serve": "run the API server for CRDs and custom resources",
        "webhook": "serve a converter as a conversion webhook",
        "console": "open the web console for any cluster, through its public API",
        "nodes": "simulate nodes on a cluster: leases renewed, pods moved through their phases",
        "envtest": "create a KUBEBUILDER_ASSETS folder, to run Go's test suites on instar",
    },
    "review": {
        "review": "find what a CRD change breaks, for which clients, and how to do it safely",
        "validate": "validate manifests offline, exactly as the server would",
        "rehearse": "try an upgrade on a copy of the cluster: a verdict per step, client, object",
    },
    "evolve": {
        "upgrade": "review, apply and migrate new CRDs on a cluster, or roll them back",
        "migrate": "rewrite stored objects at the storage version, verified",
        "versions": "show a CRD's versions, their clients and the possible next edits",
        "fields": "remove a field from a CRD in stages: deprecate, warn, count users, remove",
        "convert": "convert manifests to another version",
        "restore": "restore an object, or a deleted CRD with its objects",
        "adopt": "move an API group with its objects from a cluster to instar, and back",
    },
    "inspect": {
        "census": "count stored objects by version",
        "history": "show an object's past writes as diffs: manager, time, version",
        "access": "write least-privilege roles from a user's requests; explain a permission",
        "snapshot": "capture CRDs, their objects and their usage in one file",
        "storage": "back up, restore, copy or verify a store, or create its tables",
    },
    "develop": {
        "test": "run unit tests of CRDs, written as YAML beside them",
        "check": "search a converter for data loss, with objects generated from the schemas",
        "types": "generate Python models of custom resources from their CRDs",
        "crd": "generate a CRD from Python models, one per version",
        "completion": "print a shell script that completes commands, flags and CRD names",
    },
}
"""Every command, by what it is used for."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
EXTRAS = {
    "serve": "server",
    "validate": "server",
    "test": "server",
    "storage": "etcd",
    "webhook": "sdk",
    "check": "sdk",
    "convert": "sdk",
    "types": "review",
    "crd": "review",
    "review": "review",
    "rehearse": "server",
    "upgrade": "cluster",
    "migrate": "cluster",
    "snapshot": "snapshot",
    "census": "cluster",
    "versions": "cluster",
    "fields": "cluster",
    "history": "cluster",
    "restore": "cluster",
    "adopt": "etcd",
    "access": "cluster",
    "nodes": "cluster",
    "console": "console",
    "envtest": "server",
    "completion": "cluster",
}
"""The extra that ``pip install`` must name for a command; see pyproject.toml."""
OPTIONAL = frozenset(
    (
        "aiohttp",
        "cryptography",
        "httptools",
        "hypothesis",
        "nacl",
        "rich",
        "ruamel",
        "sortedcontainers",
        "uvicorn",
        "uvloop",
    )
)
"""Modules that come only with an extra."""


def main(
    argv: Sequence[str] | None = None, program: str = "instar", *, owns_process: bool = False
) -> int:
    """Run a command. Without ``argv`` this process is the command, and ``instar serve`` ends it.
    ``owns_process``: the caller is a program that ends after this call.
    """
    prepare_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command == "help" and "help" not in COMMANDS:
        arguments = [word for word in arguments if word != "help"]
        command, arguments = (arguments[0], [*arguments, "--help"]) if arguments else ("", ["-h"])
    if command not in COMMANDS:
        return _top_level(arguments, program)
    rest = arguments[arguments.index(command) + 1 :]
    try:
        code = _run(command, rest, program, owns_process=owns_process or argv is None)
        sys.stdout.flush()  # here, so that a closed pipe is not reported at exit
    except CliFailure as failure:
        print(f"{program} {command}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the pipe has ended, as `head` does. Nothing can be written any more.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until exit
        return 1
    except OSError as error:
        # A file that cannot be read or written. Other OS errors are explained by the command.
        if error.filename is None:
            raise
        print(f"{program} {command}: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2 if error.errno in WRONG_PATH else 1
    if argv is None and command == "serve":
        # Imported here: every other command ends by itself.
        from instar.cli.serving.process_exit import leave

        leave(code)
    return code


def kubectl_plugin() -> int:
    """Run as ``kubectl instar …``: kubectl finds ``kubectl-instar`` on the PATH."""
    return main(program="kubectl instar")


def kubectl_completion() -> int:
    """Run for a TAB after ``kubectl instar``: print words, then kubectl's directive line."""
    code = main(["completion", "words", "--", *sys.argv[1:]])
    print(":0")  # directive 0: without words, complete file names
    return code


def _run(command: str, rest: list[str], program: str, *, owns_process: bool) -> int:
    gc.disable()  # modules are never freed, so collecting during imports only delays them
    try:
        parser = parser_of(command, program)
        gc.freeze()
        gc.enable()
        module = importlib.import_module(f"instar.cli.commands.{command}")
        mixed = getattr(module, "INTERMIXED", False)
        options = parser.parse_intermixed_args(rest) if mixed else parser.parse_args(rest)
        options.arguments, options.owns_process = rest, owns_process
        code: int = module.run(options)
    except ModuleNotFoundError as error:
        raise _missing(error, command) from error
    return code


def parser_of(command: str, program: str = "instar") -> argparse.ArgumentParser:
    """Return the argument parser of a command; imports the command's module."""
    parser = Parser(prog=f"{program} {command}", description=_sentence(COMMANDS[command]))
    importlib.import_module(f"instar.cli.commands.{command}").add_arguments(parser)
    parser.epilog = "\n\n".join(filter(None, (parser.epilog, exit_code_help(command))))
    return parser


def _missing(error: ModuleNotFoundError, command: str) -> Exception:
    """Return an error that names the extra, if it provides the missing module; else the error."""
    package = (error.name or "").partition(".")[0]
    if package not in OPTIONAL:
        return error
    return CliFailure(
        f"this needs the package {package}, which is not installed: "
        f"pip install 'instar[{EXTRAS[command]}]'"
    )


def _sentence(text: str) -> str:
    """Capitalise the first letter only; ``str.capitalize`` would turn API into Api."""
    return f"{text[0].upper()}{text[1:]}."


def _top_level(arguments: list[str], program: str) -> int:
    parser = Parser(
        prog=program,
        usage=f"{program} COMMAND …",
        description="API evolution for Kubernetes custom resources.",
        epilog=f"{_listing()}\n\n'{program} help COMMAND' shows its flags and exit codes.",
    )
    parser.add_argument("--version", action="version", version=f"instar {__version__}")
    if not arguments:
        parser.print_help()
        return 2
    words = [word for word in arguments if not word.startswith("-")]
    if words:
        parser.error(_unknown(words[0]))
    parser.parse_args(arguments)
    parser.error("a command is missing")
    return 2


def _listing() -> str:
    width = max(map(len, COMMANDS))
    lines: list[str] = []
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:{width}}  {text}" for name, text in commands.items()]
    return "\n".join(lines[1:])


def _unknown(word: str) -> str:
    near = get_close_matches(word, (*COMMANDS, "help"), n=2, cutoff=0.5)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"unknown command {word!r}{meant}"


if __name__ == "__main__":
    sys.exit(main())
