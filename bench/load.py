"""Runs wrk (Debian's package) against a server and parses requests per second and latency
percentiles.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

_REPORT = """
done = function(s, l, r)
  io.write(string.format("RESULT %d %d %d %d %d\\n", s.requests, s.duration, s.errors.status +
    s.errors.connect + s.errors.read + s.errors.write + s.errors.timeout,
    l:percentile(50), l:percentile(99)))
end
"""


class Rate(NamedTuple):
    requests: int
    per_second: float
    median_ms: float
    p99_ms: float
    errors: int


def wrk(
    url: str,
    token: str,
    *,
    connections: int,
    seconds: int,
    method: str = "GET",
    body: Any = None,
    script: str = "",
) -> Rate:
    lines = [
        f'wrk.method="{method}"',
        f'wrk.headers["Authorization"]="Bearer {token}"',
        'wrk.headers["Content-Type"]="application/json"',
    ]
    if body is not None:
        lines.append(f"wrk.body=[==[{json.dumps(body)}]==]")
    with tempfile.NamedTemporaryFile("w", suffix=".lua", delete=False) as file:
        file.write((script or "\n".join(lines)) + _REPORT)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s"]
    try:
        done = subprocess.run(
            [*command, "-s", file.name, url], capture_output=True, text=True, check=True
        )
    finally:
        Path(file.name).unlink()
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            count, micros, bad, median, p99 = map(int, line.split()[1:])
            return Rate(count, count / (micros / 1e6), median / 1e3, p99 / 1e3, bad)
    raise RuntimeError(f"wrk said nothing we understand:\n{done.stdout}{done.stderr}")
