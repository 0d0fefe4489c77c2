"""Measures the cost of admission webhooks: creates on 8 connections without a webhook, with a
webhook whose rules do not match the resource, with one validating and one mutating webhook behind
TLS (``instar webhook`` in a separate process), and with the same two in the server's process.

``python -m bench.admission [--seconds 5]``
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.fixtures import BASE, CRDS, GROUP, PLURAL, crd, thing
from bench.measure import Figures, Load
from bench.process import Measured, scratch, serving
from instar.base.json_values import Object
from instar.sdk import Admission, Refused

_API = "admissionregistration.k8s.io/v1"
_HERE = "bench.admission:admission"
_CONNECTIONS = 8

admission = Admission(GROUP, "bench")


@admission.mutate(PLURAL)
def mark(obj: Object) -> None:
    obj["metadata"].setdefault("labels", {})["webhook"] = "here"


@admission.validate(PLURAL)
def judge(obj: Object) -> None:
    if (obj["spec"].get("replicas") or 1) > 1000:
        raise Refused("too many replicas")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.admission", description=__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    figures: Figures = {}

    def measure(server: Measured, name: str) -> None:
        load = Load(server, options.seconds)
        figures.update(load.measure(name, BASE, _CONNECTIONS, "POST", thing()))

    with scratch() as folder, serving(f"sqlite:{folder}/bench.db", folder) as server:
        server.call("POST", CRDS, crd())
        measure(server, "create, no webhook")
        with _webhook() as (port, bundle):
            _configure(server, port, bundle, "others.example.com", "elsewhere")
            measure(server, "create, webhooks elsewhere")
            _configure(server, port, bundle, GROUP, "here")
            measure(server, "create, one of each kind")
    flags = ("--admission-module", _HERE)
    with scratch() as folder, serving(f"sqlite:{folder}/bench.db", folder, *flags) as server:
        server.call("POST", CRDS, crd())
        measure(server, "create, the same in process")
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:{width}}  {value:10.2f}")


@contextmanager
def _webhook() -> Iterator[tuple[int, str]]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "instar", "webhook", _HERE, "--listen", "127.0.0.1:0"]
        log = Path(folder, "log")
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*command, "--self-signed", "127.0.0.1"], stdout=subprocess.PIPE, stderr=file
            )
            try:
                assert process.stdout is not None
                bundle = process.stdout.readline().decode().strip()
                while b"listening on" not in log.read_bytes():
                    assert process.poll() is None, log.read_text()
                address = log.read_text().split("listening on ")[1].split()[0]
                yield int(address.rpartition(":")[2]), bundle
            finally:
                process.terminate()
                process.wait()


def _configure(server: Measured, port: int, bundle: str, group: str, name: str) -> None:
    def client(path: str) -> dict[str, Any]:
        return {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}

    for document in admission.configurations(client):
        document["metadata"]["name"] = name
        for webhook in document["webhooks"]:
            webhook["rules"] = [{**rule, "apiGroups": [group]} for rule in webhook["rules"]]
        server.call("POST", f"/apis/{_API}/{document['kind'].lower()}s", document)


if __name__ == "__main__":
    main()
