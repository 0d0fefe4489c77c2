"""The pages for Java, Rust and containers run, as far as this machine can run them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.pages import DOCS, ROOT, environment, steps

HOW_TO = DOCS / "how-to"
JAVA_MAIN = """
public class Main {
    public static void main(String[] words) throws Exception {
        var server = new InstarServer();
        System.out.println(java.nio.file.Files.readString(server.kubeconfig()));
        server.close();
    }
}
"""
RUST_MAIN = """
mod instar_server;
fn main() {
    let folder = std::env::current_dir().unwrap();
    let server = instar_server::InstarServer::start(&folder).unwrap();
    println!("{}", std::fs::read_to_string(server.kubeconfig()).unwrap());
}
"""


def _files(page: str, folder: Path) -> None:
    for step in steps((HOW_TO / page).read_text()):
        if step.file:
            (folder / step.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.file).write_text(step.text)


def _run(folder: Path, *words: str) -> str:
    (folder / "home").mkdir(exist_ok=True)
    rustup = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
    around = {**environment(folder), "RUSTUP_HOME": rustup}
    done = subprocess.run(
        words, cwd=folder, env=around, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_java_class_starts_a_server(tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("NO JAVAC on this machine: InstarServer.java was not run")
    _files("java.md", tmp_path)
    (tmp_path / "Main.java").write_text(JAVA_MAIN)

    _run(tmp_path, "javac", "-Xlint:all", "-Werror", "InstarServer.java", "Main.java")

    assert '"server": "https://127.0.0.1:' in _run(tmp_path, "java", "-cp", ".", "Main")


def test_the_rust_struct_starts_a_server(tmp_path: Path) -> None:
    if shutil.which("rustc") is None:
        pytest.skip("NO RUSTC on this machine: instar_server.rs was not run")
    _files("rust.md", tmp_path)
    (tmp_path / "main.rs").write_text(RUST_MAIN)

    _run(tmp_path, "rustc", "--edition=2021", "-Dwarnings", "main.rs")

    assert '"server": "https://127.0.0.1:' in _run(tmp_path, "./main")


def test_the_command_of_the_image_writes_the_kubeconfig_that_the_page_reads(tmp_path: Path) -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    (command,) = (json.loads(line[4:]) for line in lines if line.startswith("CMD "))
    words = [each.replace("/data", str(tmp_path)).replace(":6443", ":0") for each in command]

    ready = _run(tmp_path, "instar", *words, "--background")
    _run(tmp_path, "instar", "serve", "--stop")

    assert ready.startswith("instar is ready")
    assert "https://127.0.0.1:" in (tmp_path / "kubeconfig").read_text()


def test_the_workflows_and_python_of_the_container_page_are_well_formed(tmp_path: Path) -> None:
    _files("containers.md", tmp_path)

    for file in (tmp_path / ".github" / "workflows").iterdir():
        assert yaml.safe_load(file.read_text())["jobs"]["test"]["steps"]
    compile((tmp_path / "instar_container.py").read_text(), "instar_container.py", "exec")
