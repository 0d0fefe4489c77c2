"""A stand-in for kubelet and Job controller: a Job's container is run as a process here, as the
ServiceAccount it names, with the volumes it mounts; then its status says how that went."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.server import LiveServer

MERGE = "application/merge-patch+json"


def account_kubeconfig(server: LiveServer, namespace: str, account: str, file: Path) -> Path:
    """A kubeconfig with nothing but a token of the account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    answer = server.request("POST", path, {"spec": {"expirationSeconds": 3600}})
    assert answer.status == 201, answer.text
    config = json.loads(server.kubeconfig.read_text())
    config["users"] = [
        {"name": each["name"], "user": {"token": answer.json["status"]["token"]}}
        for each in config["users"]
    ]
    file.write_text(json.dumps(config))
    return file


def run_container(
    server: LiveServer, job: dict[str, Any], folder: Path
) -> subprocess.CompletedProcess[str]:
    """The only container of a Job, whose image has instar as its entry point."""
    namespace, pod = job["metadata"]["namespace"], job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    mounted = _mounted(server, namespace, pod, container, folder)
    words = [mounted.get(word, word) for word in container["args"]]
    given = {each["name"]: each["value"] for each in container.get("env", ())}
    own = {name: str(folder) if value == "/tmp" else value for name, value in given.items()}
    kubeconfig = account_kubeconfig(
        server, namespace, pod["serviceAccountName"], folder / "kubeconfig"
    )
    return subprocess.run(
        [sys.executable, "-m", "instar", *words],
        env={"PATH": os.environ["PATH"], "HOME": "/", **own, "KUBECONFIG": str(kubeconfig)},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _mounted(
    server: LiveServer,
    namespace: str,
    pod: dict[str, Any],
    container: dict[str, Any],
    folder: Path,
) -> dict[str, str]:
    """Where each ConfigMap lies, by the path it should have."""
    maps = {
        each["name"]: each["configMap"]["name"]
        for each in pod.get("volumes", ())
        if "configMap" in each
    }
    found: dict[str, str] = {}
    for mount in container.get("volumeMounts", ()):
        if mount["name"] in maps:
            path = f"/api/v1/namespaces/{namespace}/configmaps/{maps[mount['name']]}"
            data = server.request("GET", path).json["data"]
            found[mount["mountPath"]] = str(_as_kubelet_writes(folder / mount["name"], data))
    return found


def _as_kubelet_writes(folder: Path, data: dict[str, str]) -> Path:
    """Through two links, so that all files change at once."""
    real = folder / "..2026_11_16"
    real.mkdir(parents=True)
    (folder / "..data").symlink_to(real.name)
    for name, text in data.items():
        (real / name).write_text(text)
        (folder / name).symlink_to(f"..data/{name}")
    return folder


@contextmanager
def job_controller(
    server: LiveServer, folder: Path, namespace: str = "default"
) -> Iterator[list[subprocess.CompletedProcess[str]]]:
    """Runs each Job once, until the block ends; what was run."""
    over, ran = threading.Event(), list[subprocess.CompletedProcess[str]]()
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"

    def work() -> None:
        while not over.wait(0.05):
            for job in server.request("GET", jobs).json["items"]:
                if not job.get("status", {}).get("conditions"):
                    place = folder / job["metadata"]["uid"]
                    place.mkdir()
                    ran.append(run_container(server, job, place))
                    _report(server, f"{jobs}/{job['metadata']['name']}", ran[-1].returncode == 0)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ran
    finally:
        over.set()
        thread.join()


def _report(server: LiveServer, path: str, good: bool) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = ("SuccessCriteriaMet", "Complete") if good else ("FailureTarget", "Failed")
    told = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds]
    status: dict[str, Any] = {"startTime": now, "conditions": told}
    status |= {"succeeded": 1, "completionTime": now} if good else {"failed": 1}
    status["uncountedTerminatedPods"] = {}
    answer = server.request("PATCH", f"{path}/status", {"status": status}, content_type=MERGE)
    assert answer.status == 200, answer.text
