"""The ``instar`` command: finds the subcommand, imports only that, turns errors into exit codes.

0 is success, 1 a failure said in one line, 2 a wrong call.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from instar import __version__
from instar.cli.failure import CliFailure

COMMANDS = {
    "serve": "run the API server for CRDs and custom resources",
    "webhook": "serve a converter as a conversion webhook",
    "validate": "judge manifests offline, exactly as the server would",
    "test": "run unit tests of CRDs, written as YAML beside them",
    "check": "hunt a converter for data loss, with objects made from the CRD's schemas",
    "convert": "convert manifests to another version",
    "review": "what a CRD change breaks, for whom, and how to get there safely",
    "upgrade": "new CRDs on a cluster: reviewed, applied, migrated, proven, or taken back",
    "migrate": "rewrite stored objects at the storage version, verified",
    "census": "how many objects are stored at which version",
    "versions": "a CRD's versions, who uses them, and what can be done next",
    "fields": "a field's way out of a CRD: announce, warn, count, remove",
    "storage": "copy a store to another engine, or verify one",
}


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command not in COMMANDS:
        return _top_level(arguments)
    module = importlib.import_module(f"instar.cli.{command}")
    parser = argparse.ArgumentParser(
        prog=f"instar {command}", description=COMMANDS[command].capitalize() + "."
    )
    module.add_arguments(parser)
    rest = arguments[arguments.index(command) + 1 :]
    parse = (
        parser.parse_intermixed_args if getattr(module, "INTERMIXED", False) else parser.parse_args
    )
    options = parse(rest)
    options.arguments = rest
    try:
        code: int = module.run(options)
    except CliFailure as failure:
        print(f"instar {command}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    return code


def _top_level(arguments: list[str]) -> int:
    width = max(map(len, COMMANDS))
    listing = "\n".join(f"  {name:{width}}  {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="instar",
        usage="instar COMMAND …",
        description="API evolution for Kubernetes custom resources.",
        epilog=f"commands:\n{listing}\n\ninstar COMMAND --help tells more.",
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
