"""``instar serve --background`` and ``--stop``: a detached server, its pid file and its log.

``cli/commands/serve.py`` calls ``start`` in the process that the user runs and ``claim`` in the
server. The server locks its pid file until it exits. So a pid file that a killed server left behind
is not taken for a running server, not even if another program has the pid now.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from instar.cli.shared.common_flags import seconds
from instar.cli.shared.failure import CliFailure

_POLL_SECONDS = 0.02
_LOG_LINES = 20


def add_background_arguments(parser: argparse._ActionsContainer) -> None:
    add = parser.add_argument
    add(
        "--background",
        action="store_true",
        help="return when the server is ready and leave it running; if it cannot start, print "
        "the reason and fail",
    )
    add(
        "--stop",
        action="store_true",
        help="stop the server of --pid-file and return when it has ended",
    )
    add(
        "--pid-file",
        metavar="FILE",
        type=Path,
        help="write the server's process id here; --background logs to FILE with the suffix .log "
        "(default with --background and --stop: instar.pid)",
    )
    add(
        "--wait",
        metavar="DURATION",
        type=seconds,
        default=30.0,
        help="how long --background waits for the server to be ready, and --stop for its end: "
        "5, 2m (default: 30s)",
    )
    add("--ready-fd", type=int, metavar="N", help=argparse.SUPPRESS)


def settle(args: argparse.Namespace) -> None:
    """Reject mutually exclusive flags; set the default pid file."""
    if args.background and args.stop:
        raise CliFailure("--background and --stop are mutually exclusive", code=2)
    if args.background and args.exit_with_parent:
        raise CliFailure("--background and --exit-with-parent are mutually exclusive", code=2)
    if args.pid_file is None and (args.background or args.stop):
        args.pid_file = Path("instar.pid")


def start(args: argparse.Namespace) -> int:
    """Run this command line again as a detached process; return when its server is ready or
    failed.
    """
    _reject_running(args.pid_file)
    log = args.pid_file.with_suffix(".log")
    reader, writer = os.pipe()
    with open(log, "wb") as output, os.fdopen(reader, "rb", buffering=0) as pipe:
        server = subprocess.Popen(
            [*sys.orig_argv, "--ready-fd", str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(writer,),
            start_new_session=True,
        )
        os.close(writer)
        try:
            ready = _first_line(pipe.fileno(), args.wait)
        except KeyboardInterrupt:
            server.terminate()
            raise
    if ready:
        print(ready)
        print(f"stop it with: {_stop_command(args.pid_file)}")
        return 0
    return _failed(server, log, args.wait if ready is None else None)


def _reject_running(pid_file: Path) -> None:
    """Raise if a server holds the pid file, before its log is overwritten."""
    file = _locked(pid_file)
    pid_file.unlink()
    os.close(file)


def _failed(server: subprocess.Popen[bytes], log: Path, late: float | None) -> int:
    """Print why the server is not ready, and return the exit code. ``late``: it is still
    starting.
    """
    if late is not None:
        server.terminate()
    code = server.wait()
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
    sys.stderr.writelines(f"{line}\n" for line in lines)
    if late is not None:
        raise CliFailure(f"the server was not ready after {late:g} s and was stopped")
    return code if code > 0 else 1


def _first_line(file: int, patience: float) -> str | None:
    """Return the line that the server prints when ready; "" if it ended before, None on a
    timeout.
    """
    if not select.select([file], [], [], patience)[0]:
        return None
    return os.read(file, 4096).decode().rstrip()


def _stop_command(pid_file: Path) -> str:
    """Return the command that stops the server of ``pid_file``, to be typed in this folder."""
    words = [*_program(), "serve", "--stop"]
    if str(pid_file) != "instar.pid":
        words += ["--pid-file", str(pid_file)]
    return shlex.join(words)


def _program() -> list[str]:
    """Return the words that run this installation: ``instar`` only if the PATH finds this one."""
    script = Path(sys.executable).with_name("instar")
    if not script.exists():
        return [sys.executable, "-m", "instar"]
    found = shutil.which("instar")
    if found is not None and os.path.samefile(found, script):
        return ["instar"]
    here = Path.cwd()
    return [str(script.relative_to(here) if script.is_relative_to(here) else script)]


def announce(text: str, ready_fd: int | None, *, quiet: bool = False) -> None:
    """Print that the server is ready unless ``quiet``, and report it to the waiting parent
    process."""
    if not quiet:
        print(text, flush=True)
    if ready_fd is not None:
        with contextlib.suppress(BrokenPipeError):
            os.write(ready_fd, text.encode())
        os.close(ready_fd)


@contextlib.contextmanager
def claim(pid_file: Path | None) -> Iterator[None]:
    """Write the pid file, and remove it at the end. The lock is released when the process exits, so
    ``stop`` returns after the whole process has ended.
    """
    if pid_file is None:
        yield
        return
    file = _locked(pid_file)
    try:
        os.truncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            pid_file.unlink()


def _locked(pid_file: Path) -> int:
    while True:
        file = os.open(pid_file, os.O_RDWR | os.O_CREAT, 0o644)
        if not _lock(file):
            pid = os.read(file, 32).decode().strip()
            os.close(file)
            raise CliFailure(
                f"{pid_file}: a server is running already (pid {pid}). Stop it with "
                f"{_stop_command(pid_file)}, or pass another --pid-file."
            )
        # A server that has just ended removes its file: the lock is worth nothing then.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), pid_file.stat()):
                return file
        os.close(file)


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def stop(pid_file: Path, patience: float) -> int:
    """Send SIGTERM to the server of ``pid_file`` and wait until it has ended."""
    try:
        file = os.open(pid_file, os.O_RDONLY)
    except FileNotFoundError:
        raise CliFailure(f"{pid_file}: no such file, so no server to stop") from None
    try:
        if _lock(file):
            pid_file.unlink(missing_ok=True)
            raise CliFailure(f"{pid_file}: its server has ended already; removed the file")
        pid = int(os.read(file, 32) or b"0")
        if pid > 0:
            os.kill(pid, signal.SIGTERM)
        _await_end(file, pid, patience)
    finally:
        os.close(file)
    return 0


def _await_end(file: int, pid: int, patience: float) -> None:
    until = time.monotonic() + patience
    while not _lock(file):
        if time.monotonic() > until:
            raise CliFailure(f"the server (pid {pid}) has not ended after {patience:g} s")
        time.sleep(_POLL_SECONDS)
