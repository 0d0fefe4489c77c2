"""Every command of an installed ``instar``, run as a user would: with a server, a webhook, files.

usage: python walk.py PATH/TO/instar EXAMPLES

Knows nothing but the program and the examples, so that any environment can run it: it is started
by ``scripts/test-install`` and by test_wheel.py, never collected. A command it has no step for is
asked for its help, and named.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.walk.example.com}
spec:
  group: walk.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
"""
VERSION = """\
  - name: %s
    served: true
    storage: %s
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer, minimum: 0}}}}
"""
NAME = "gadgets.walk.example.com"
OBJECTS = "/apis/walk.example.com/v1beta1/namespaces/default/gadgets"


class Walk:
    def __init__(self, program: str, examples: Path, folder: Path) -> None:
        self.program, self.folder = program, folder
        self.walked: set[str] = set()
        for name in ("hostport", "cron", "review"):
            ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
            shutil.copytree(examples / name, folder / name, ignore=ignored)

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    def run(self, *words: str, code: int = 0, told: str = "") -> str:
        """One command in the folder; what it printed."""
        self.walked.add(words[0])
        done = subprocess.run(
            [self.program, *words],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        shown = done.stdout + done.stderr
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{shown}"
        assert told in shown, f"{words}: no {told!r} in\n{shown}"
        print(f"walk: instar {' '.join(words)}", flush=True)
        return done.stdout

    @contextmanager
    def started(self, *words: str, until: str) -> Iterator[str]:
        """A command that goes on, from the line that says so to the end of the block."""
        self.walked.add(words[0])
        process = subprocess.Popen(
            [self.program, *words],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert process.stdout is not None
            seen = ""
            for line in process.stdout:
                seen += line
                if until in line:
                    break
            else:
                raise AssertionError(f"{words}: ended with {process.wait()}\n{seen}")
            print(f"walk: instar {' '.join(words)}", flush=True)
            yield seen
        finally:
            process.terminate()
            assert process.wait(20) == 0, f"{words} did not end well"

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return {**kept, "HOME": str(self.folder), "KUBECONFIG": str(self.folder / "kubeconfig")}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        config = json.loads((self.folder / "kubeconfig").read_text())
        server = config["clusters"][0]["cluster"]["server"]
        token = config["users"][0]["user"]["token"]
        request = urllib.request.Request(
            server + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            method=method,
        )
        unverified = ssl._create_unverified_context()
        with urllib.request.urlopen(request, context=unverified, timeout=30) as answer:
            return json.load(answer)


def files(walk: Walk) -> None:
    """What needs no server."""
    old = walk.file("old.yaml", CRD + VERSION % ("v1beta1", "true"))
    new = walk.file("new.yaml", CRD + VERSION % ("v1beta1", "false") + VERSION % ("v1", "true"))
    bad = walk.file("bad.yaml", (CRD + VERSION % ("v1beta1", "true")).replace("integer", "string"))
    walk.run("review", old, new, told="0 errors")
    walk.run("review", old, bad, "-o", "json", code=1)
    walk.run("review", "--explain", "type-changed", told="type-changed")
    gadget = (
        "apiVersion: walk.example.com/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {size: %s}\n"
    )
    walk.run("validate", new, "--", walk.file("good/a.yaml", gadget % "1"))
    walk.run("validate", new, "--", walk.file("wrong/a.yaml", gadget % "-1"), code=1, told="size")
    walk.run("test", "--write", new, "gadgets.suite.yaml")
    walk.run("test", "gadgets.suite.yaml", "--crd", new, told="passed")
    rules = ("--converter", "hostport/conversion.yaml")
    walk.run("check", "--crd", "hostport/crd.yaml", *rules, "--examples", "10", told="no counter")
    walk.run("convert", *rules, "--to", "v1", "hostport/sample.yaml", told="example.com/v1")
    walk.run("types", "--python", "dataclass", new, "--version", "v1", "-o", "gadgets.py")
    walk.run("crd", "gadgets:Gadget", told=NAME)
    walk.run("completion", "bash", told="complete")
    walk.run("webhook", "m:c", "--manifests", told="Deployment")
    walk.run("upgrade", "--manifests", new, told="ClusterRole")


def webhook(walk: Walk) -> None:
    """A conversion webhook on TLS, checked from outside."""
    words = ["hostport/conversion.yaml", "--listen", "127.0.0.1:0"]
    pair = ["--cert", "tls.crt", "--key", "tls.key"]
    with walk.started(
        "webhook", *words, "--self-signed", "localhost", *pair, until="listening"
    ) as told:
        found = re.search(r":(\d+)\b(?!.*:\d)", told.splitlines()[-1])
        assert found is not None, told
        url = f"https://localhost:{found[1]}/convert"
        words = ["--webhook", url, "--webhook-insecure", "--examples", "5"]
        walk.run("check", "--crd", "hostport/crd.yaml", *words, told="no counterexample")


def cluster(walk: Walk) -> None:
    """A server, and everything that talks to one."""
    words = ("serve", "--listen", "127.0.0.1:0", "--storage", "sqlite:walk.db")
    with walk.started(
        *words, "--kubeconfig", "kubeconfig", "--user", "jane=jane.config", until="ready"
    ):
        walk.run("upgrade", "old.yaml", told="created")
        for number in range(3):
            body = {
                "apiVersion": "walk.example.com/v1beta1",
                "kind": "Gadget",
                "metadata": {"name": f"g{number}"},
                "spec": {"size": number},
            }
            walk.ask("POST", OBJECTS, body)
        walk.run("census", told="3")
        walk.run("history", "gadget", "g0", told="create")
        walk.run("snapshot", "-o", "world.tar.gz", told="3 objects")
        walk.ask("DELETE", f"{OBJECTS}/g0")
        walk.run("restore", "gadget", "g0", told="created")
        walk.run("rehearse", "--from", "world.tar.gz", "--to", "new.yaml")
        with walk.started("console", "--listen", "127.0.0.1:0", until="http") as link:
            assert "/console/" in link
        walk.run("versions", NAME, told="v1beta1")
        walk.run("versions", NAME, "add", "v1")
        walk.run("versions", NAME, "storage", "v1")
        walk.run("migrate", NAME, told="3 objects")
        walk.run("fields", NAME)
        walk.run("upgrade", "new.yaml", "--plan")
        walk.run("review", f"kube:{NAME}", "new.yaml")
        walk.run("access", "explain", "jane", "list", NAME, code=1, told="refused")
        walk.run("access", "record", "jane", code=1, told="nothing on record")
        walk.run("completion", "words", "--", "versions", "gad")  # two seconds at most, then none
        kubectl = shutil.which("kubectl")
        if kubectl is None:
            print("walk: NO kubectl here", file=sys.stderr)
        else:
            folder = str(Path(walk.program).parent)
            env = {**walk.environment(), "PATH": f"{folder}:{os.environ['PATH']}"}
            for asked in (("get", NAME, "-o", "name"), ("instar", "census")):
                subprocess.run([kubectl, *asked], cwd=walk.folder, env=env, check=True, timeout=60)
    walk.run("storage", "verify", "walk.db", told="sound")
    walk.run("storage", "copy", "sqlite:walk.db", "sqlite:copy.db", told="verified")
    walk.run("census", "--storage", "sqlite:copy.db", told="3")


def go_suites(walk: Walk) -> None:
    """The folder that envtest is pointed at."""
    walk.run("envtest", "assets")
    for name in ("kube-apiserver", "etcd"):
        program = str(walk.folder / "assets" / name)
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def main() -> None:
    program, examples = sys.argv[1:]
    listed = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        walk = Walk(program, Path(examples), Path(folder))
        for part in (files, webhook, cluster, go_suites):
            part(walk)
        for command in sorted(set(commands) - walk.walked):
            print(f"walk: only --help of {command}", file=sys.stderr)
            walk.run(command, "--help")
    print(f"walk: {len(commands)} commands")


if __name__ == "__main__":
    main()
