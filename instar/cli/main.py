"""The ``instar`` command: finds the subcommand, imports only that, turns errors into exit codes.

What the codes mean is in ``cli/shared/exit_codes.py``.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
from collections.abc import Sequence

from instar import __version__
from instar.cli.shared.exit_codes import told
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.help_format import Parser

COMMANDS = {
    "serve": "run the API server for CRDs and custom resources",
    "webhook": "serve a converter as a conversion webhook",
    "validate": "judge manifests offline, exactly as the server would",
    "test": "run unit tests of CRDs, written as YAML beside them",
    "check": "hunt a converter for data loss, with objects made from the CRD's schemas",
    "convert": "convert manifests to another version",
    "types": "Python models of custom resources, from their CRDs",
    "crd": "a CRD from Python models, one for each version",
    "review": "what a CRD change breaks, for whom, and how to get there safely",
    "rehearse": "an upgrade tried on a copy of the cluster: a verdict per step, client, object",
    "upgrade": "new CRDs on a cluster: reviewed, applied, migrated, proven, or taken back",
    "migrate": "rewrite stored objects at the storage version, verified",
    "snapshot": "a cluster, its objects and who uses them, as one file",
    "census": "how many objects are stored at which version",
    "versions": "a CRD's versions, who uses them, and what can be done next",
    "fields": "a field's way out of a CRD: announce, warn, count, remove",
    "history": "who changed what of an object, when, at which version",
    "restore": "bring back an object, or a deleted CRD with its objects",
    "console": "the web console for any cluster, through its public API",
    "access": "the roles somebody needs, by what they did; why somebody may or may not",
    "storage": "copy a store to another engine, or verify one",
    "envtest": "a folder for KUBEBUILDER_ASSETS: Go's test suites on instar",
    "completion": "a script that completes commands, flags and names of CRDs in a shell",
}
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
    "access": "cluster",
    "console": "console",
    "envtest": "server",
    "completion": "cluster",
}
"""What ``pip install`` must name for a command; see pyproject.toml."""
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
"""Modules that only extras bring."""


def main(argv: Sequence[str] | None = None, program: str = "instar") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command not in COMMANDS:
        return _top_level(arguments, program)
    rest = arguments[arguments.index(command) + 1 :]
    try:
        return _run(command, rest, program)
    except CliFailure as failure:
        print(f"{program} {command}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    except OSError as error:
        # A file that cannot be read or written; whatever is not a file is the command's to explain.
        if error.filename is None:
            raise
        print(f"{program} {command}: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1


def kubectl_plugin() -> int:
    """``kubectl instar …``: kubectl finds ``kubectl-instar`` on the PATH."""
    return main(program="kubectl instar")


def kubectl_completion() -> int:
    """What kubectl runs for a TAB after ``kubectl instar``: words, and a last line of its own."""
    code = main(["completion", "words", "--", *sys.argv[1:]])
    print(":0")  # where there are no words, files may be meant
    return code


def _run(command: str, rest: list[str], program: str) -> int:
    gc.disable()  # modules stay: looking through them over and over only delays their coming
    try:
        parser = parser_of(command, program)
        gc.freeze()
        gc.enable()
        module = importlib.import_module(f"instar.cli.commands.{command}")
        mixed = getattr(module, "INTERMIXED", False)
        options = parser.parse_intermixed_args(rest) if mixed else parser.parse_args(rest)
        options.arguments = rest
        code: int = module.run(options)
    except ModuleNotFoundError as error:
        raise _missing(error, command) from error
    return code


def parser_of(command: str, program: str = "instar") -> argparse.ArgumentParser:
    """All there is to know of one command's arguments. Imports what the command needs."""
    parser = Parser(prog=f"{program} {command}", description=_sentence(COMMANDS[command]))
    importlib.import_module(f"instar.cli.commands.{command}").add_arguments(parser)
    parser.epilog = "\n\n".join(filter(None, (parser.epilog, told(command))))
    return parser


def _missing(error: ModuleNotFoundError, command: str) -> Exception:
    """Only what an extra would bring: a converter's own imports are its author's."""
    package = (error.name or "").partition(".")[0]
    if package not in OPTIONAL:
        return error
    return CliFailure(
        f"this needs the package {package}, which is not installed: "
        f"pip install 'instar[{EXTRAS[command]}]'"
    )


def _sentence(text: str) -> str:
    """Not ``capitalize``, which would make Api of API."""
    return f"{text[0].upper()}{text[1:]}."


def _top_level(arguments: list[str], program: str) -> int:
    width = max(map(len, COMMANDS))
    listing = "\n".join(f"  {name:{width}}  {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog=program,
        usage=f"{program} COMMAND …",
        description="API evolution for Kubernetes custom resources.",
        epilog=f"commands:\n{listing}\n\n{program} COMMAND --help tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"instar {__version__}")
    if not arguments:
        parser.print_help()
        return 2
    parser.parse_known_args(arguments)
    words = [word for word in arguments if not word.startswith("-")]
    parser.error(f"unknown command {words[0]!r}" if words else "a command is missing")
    return 2


if __name__ == "__main__":
    sys.exit(main())
