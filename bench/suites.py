"""``python -m bench.suites FOLDER ... --assets NAME=FOLDER ...``: runs Go test suites on several
servers.

Searches the ``FOLDER``s for ``*.test`` binaries, as ``go test -c`` writes them. Each binary runs in
its own folder, as with ``go test``, once per ``--assets``: a folder with ``kube-apiserver`` and
``etcd``, as ``setup-envtest`` or ``instar envtest`` writes it. Without ``--assets`` named
``instar`` one is written for this tree. Prints a table of specs, CPU time and memory, and each spec
whose result differs; exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.process_tree import run_watched
from bench.suite_results import Run, Usage, differences, ginkgo_specs, go_tests, table

_GINKGO = b"-ginkgo.json-report"


class Options(NamedTuple):
    """Command-line options of a run."""

    flags: Sequence[str]
    """Further arguments of the test binaries."""
    ginkgo: str
    """The ``ginkgo`` command, for more than one process."""
    processes: int
    output: Path


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    found = [path for folder in given.folders for path in sorted(_binaries(folder))]
    binaries = [path for path in found if given.only in str(path)]
    if not binaries:
        print(f"no *.test in {' '.join(map(str, given.folders))}", file=sys.stderr)
        return 2
    options = Options(given.flag, given.ginkgo, given.processes, given.output)
    with contextlib.ExitStack() as stack:
        servers = dict(pair.split("=", 1) for pair in given.assets)
        if "instar" not in servers:
            servers["instar"] = stack.enter_context(tempfile.TemporaryDirectory())
            _write_assets(servers["instar"])
        suites = {_name(path): _run_on_each(path, servers, options) for path in binaries}
    print(table(suites, list(servers)))
    return _print_differences(suites, list(servers))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.suites", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--assets", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--only", default="", metavar="TEXT", help="suites with this in the path")
    parser.add_argument("--flag", action="append", default=[], help="for the test binaries")
    parser.add_argument("--ginkgo", default="ginkgo", metavar="PATH", help="the ginkgo command")
    parser.add_argument("--processes", type=int, default=1, help="by ginkgo, a server for each")
    parser.add_argument(
        "--output", type=Path, default=Path("suites-output"), help="where logs and reports go"
    )
    return parser


def _binaries(folder: Path) -> list[Path]:
    return [folder] if folder.is_file() else list(folder.rglob("*.test"))


def _name(binary: Path) -> str:
    return binary.name.removesuffix(".test")


def _write_assets(folder: str) -> None:
    words = [sys.executable, "-m", "instar", "envtest", folder]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _run_on_each(binary: Path, servers: dict[str, str], options: Options) -> dict[str, Run]:
    found = {}
    for name, assets in servers.items():
        found[name] = run = _run(binary.resolve(), name, assets, options)
        print(
            f"{_name(binary)} on {name}: {run.passed} of {run.ran} passed, "
            f"{run.usage.seconds:.1f} s, exit {run.exit_code}",
            file=sys.stderr,
        )
    return found


def _run(binary: Path, server: str, assets: str, options: Options) -> Run:
    output = options.output.resolve() / server
    output.mkdir(parents=True, exist_ok=True)
    log, report = output / f"{_name(binary)}.log", output / f"{_name(binary)}.json"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(Path(assets).resolve())}
    with log.open("wb") as file:
        words = _command(binary, report, options)
        watched = run_watched(words, binary.parent, environment, file)
    specs = go_tests(log.read_text(errors="replace"))
    if report.exists():
        specs += ginkgo_specs(report.read_text())
    usage = Usage(watched.seconds, watched.cpu, watched.peak_mb)
    return Run(specs, usage, watched.exit_code)


def _command(binary: Path, report: Path, options: Options) -> list[str]:
    if not _has_ginkgo(binary):
        return [str(binary), "-test.v", *options.flags]
    if options.processes > 1:
        beside = [f"--procs={options.processes}", "--keep-going", f"--output-dir={report.parent}"]
        return [options.ginkgo, "--no-color", *beside, f"--json-report={report.name}", str(binary)]
    return [
        str(binary),
        "-test.v",
        "-ginkgo.no-color",
        f"-ginkgo.json-report={report}",
        *options.flags,
    ]


def _has_ginkgo(binary: Path) -> bool:
    """Return whether the binary accepts Ginkgo's flags; linking to Ginkgo is not enough."""
    told = subprocess.run([binary, "-h"], capture_output=True, check=False)
    return _GINKGO in told.stdout + told.stderr


def _print_differences(suites: dict[str, dict[str, Run]], servers: Sequence[str]) -> int:
    found = False
    for name, runs in suites.items():
        for other in servers[1:]:
            for line in differences(runs[servers[0]], runs[other]):
                found = True
                print(f"{name}, {servers[0]} / {other}: {line}")
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
