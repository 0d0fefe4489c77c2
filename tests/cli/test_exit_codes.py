"""One table of exit codes: the same mistake ends every command in the same way.

Each command has a call for each place where it takes a file, and each call is run with each
mistake. A wrong call is 2, a cluster that does not answer is 1; in both cases standard error has a
line about it and no traceback.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from instar.cli.main import COMMANDS, main
from instar.cli.shared.exit_codes import MISTAKES
from instar.cli.shared.streams import prepare_streams

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hostport"
BAD = "{bad}"
"""Stands for the file with the mistake."""
_MOST_SECONDS = 20


class Call(NamedTuple):
    words: tuple[str, ...]
    folders: bool = False
    """Whether a folder may be given here, too."""
    yaml: bool = True
    """Whether the file is YAML, so that broken YAML is a mistake."""

    def __str__(self) -> str:
        return " ".join(self.words)


CALLS = [
    Call(("review", BAD), folders=True),
    Call(("review", "{crd}", BAD), folders=True),
    Call(("review", BAD, "{crd}"), folders=True),
    Call(("review", "{crd}", "--config", BAD), yaml=False),
    Call(("review", "{crd}", "--baseline", BAD), yaml=False),
    Call(("review", "{crd}", "--objects", BAD), folders=True),
    Call(("review", "{crd}", "--converter", BAD + ".yaml")),
    Call(("validate", BAD), folders=True),
    Call(("validate", "{crd}", "--crd", BAD), folders=True),
    Call(("test", BAD), folders=True),
    Call(("convert", "--converter", BAD, "--to", "v1", "{crd}")),
    Call(("convert", "--converter", "{rules}", "--to", "v1", BAD), folders=True, yaml=False),
    Call(("convert", "--converter", "{rules}", "--to", "v1", "--crd", BAD, "{crd}"), folders=True),
    Call(("check", "--crd", BAD, "--converter", "{rules}", "--no-progress")),
    Call(("check", "--crd", "{crd}", "--converter", BAD, "--no-progress")),
    Call(("types", "--python", "dataclass", BAD), folders=True),
    Call(("rehearse", "--from", BAD, "--to", "{crd}"), folders=True),
    Call(("rehearse", "--from", "{crd}", "--to", BAD), folders=True),
    Call(("upgrade", BAD, "--kubeconfig", "{dead}"), folders=True),
    Call(("versions", "x.example.com", "deprecate", "v1", "--file", BAD, "--offline")),
    Call(("webhook", BAD, "--insecure-http")),
    Call(("snapshot", "--from", BAD, "-o", "{out}"), folders=True),
    Call(("restore", "widget", "a", "--from", BAD, "--kubeconfig", "{dead}"), folders=True),
    Call(("serve", "--listen", "127.0.0.1:0", "--from", BAD), folders=True),
    Call(("serve", "--storage", "memory:", "--audit-policy-file", BAD, "--audit-log-path", "-")),
    Call(("serve", "--storage", "memory:", "--token-file", BAD), yaml=False),
    Call(("serve", "--storage", "memory:", "--authentication-config", BAD)),
    Call(("serve", "--storage", "memory:", "--encryption-provider-config", BAD)),
    Call(("census", "--kubeconfig", BAD)),
    Call(("migrate", "--all", "--kubeconfig", BAD)),
    Call(("upgrade", "{crd}", "--kubeconfig", BAD)),
    Call(("versions", "widgets.example.com", "--kubeconfig", BAD)),
    Call(("fields", "widgets.example.com", "--kubeconfig", BAD)),
    Call(("history", "widget", "a", "--kubeconfig", BAD)),
    Call(("restore", "widget", "a", "--kubeconfig", BAD)),
    Call(("access", "explain", "someone", "get", "widgets", "--kubeconfig", BAD)),
    Call(("snapshot", "-o", "{out}", "--kubeconfig", BAD)),
    Call(("console", "--kubeconfig", BAD)),
    Call(("review", "kube:", "{crd}", "--kubeconfig", BAD)),
    Call(("storage", "verify", "sqlite:" + BAD), yaml=False),
]
CLUSTERS = [call for call in CALLS if call.words[-2:] == ("--kubeconfig", BAD)]
WRITES = [
    ("review", "{crd}", "-o", "json={gone}/x.json"),
    ("review", "{crd}", "--write-baseline", "{gone}/x.json"),
    ("test", "{suites}", "--crd", "{crd}", "--write", "widgets.exit.example.com"),
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    crd, rules = tmp_path / "crd.yaml", tmp_path / "rules.yaml"
    crd.write_bytes((EXAMPLE / "crd.yaml").read_bytes())
    rules.write_bytes((EXAMPLE / "conversion.yaml").read_bytes())
    dead = tmp_path / "dead.yaml"
    dead.write_text(_kubeconfig("https://127.0.0.1:1"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return {
        "crd": str(crd),
        "rules": str(rules),
        "dead": str(dead),
        "out": str(tmp_path / "out.tar"),
        "gone": str(tmp_path / "gone"),
        "suites": str(tmp_path / "gone" / "suites.yaml"),
    }


def _kubeconfig(server: str, current: str = "c") -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": current,
        }
    )


def _missing(path: Path) -> None:
    """Leave it out."""


def _folder(path: Path) -> None:
    path.mkdir()


def _no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00\x80")


def _broken_yaml(path: Path) -> None:
    path.write_text("a: [\n}\n")


SPOILT: dict[str, Callable[[Path], None]] = {
    "missing": _missing,
    "folder": _folder,
    "not text": _no_text,
    "broken YAML": _broken_yaml,
}


def _cases() -> Iterator[tuple[Call, str]]:
    for call in CALLS:
        for mistake in SPOILT:
            if mistake == "folder" and call.folders:
                continue
            if mistake == "broken YAML" and not call.yaml:
                continue
            yield call, mistake


def _run(words: tuple[str, ...], files: dict[str, str], **more: str) -> int:
    filled = []
    for word in words:
        for name, value in {**files, **more}.items():
            word = word.replace(f"{{{name}}}", value)
        filled.append(word)
    # A server or console that starts in spite of the mistake would run for ever.
    before = signal.signal(signal.SIGALRM, _started)
    signal.alarm(_MOST_SECONDS)
    try:
        return main(filled)
    except SystemExit as left:
        return int(left.code or 0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _started(*_: object) -> None:
    raise AssertionError("the command did not end")


@pytest.mark.parametrize(("call", "mistake"), list(_cases()), ids=lambda each: str(each))
def test_a_file_that_cannot_be_used_is_a_wrong_call(
    call: Call,
    mistake: str,
    tmp_path: Path,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = tmp_path / "bad.yaml"
    SPOILT[mistake](bad)

    code = _run(call.words, files, bad=str(bad))

    told = "".join(capsys.readouterr())
    assert code == MISTAKES["file"], told
    assert "bad.yaml" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_an_unknown_flag_is_two_lines_and_a_wrong_call(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = _run((command, "--no-such-flag"), {})

    told = capsys.readouterr().err.splitlines()
    assert code == MISTAKES["flag"]
    assert len(told) == 2
    assert told[0].startswith(f"instar {command}")


@pytest.mark.parametrize("call", CLUSTERS, ids=str)
def test_a_cluster_that_does_not_answer_is_a_failure(
    call: Call, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    if call.words[0] == "console":
        pytest.skip("the console starts and says so on its page")
    code = _run(call.words, files, bad=files["dead"])

    told = "".join(capsys.readouterr())
    wanted = MISTAKES["file"] if call.words[0] == "review" else MISTAKES["unreachable"]
    assert code == wanted, told
    assert "127.0.0.1:1" in told


@pytest.mark.parametrize("call", CLUSTERS, ids=str)
def test_a_kubeconfig_without_that_context_is_a_wrong_call(
    call: Call, tmp_path: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "other.yaml"
    config.write_text(_kubeconfig("https://127.0.0.1:1", current="none"))

    code = _run(call.words, files, bad=str(config))

    told = "".join(capsys.readouterr())
    assert code == MISTAKES["kubeconfig"], told
    assert "'none'" in told or "none" in told


@pytest.mark.parametrize("words", WRITES, ids=" ".join)
def test_a_file_that_cannot_be_written_is_a_wrong_call(
    words: tuple[str, ...], files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = _run(words, files)

    told = capsys.readouterr().err
    assert code == MISTAKES["file"], told
    assert str(Path(files["gone"]).name) in told


@pytest.mark.parametrize("storage", ["foo:bar", "nothing", "sqlite:"])
def test_a_storage_that_cannot_be_used_is_a_wrong_call(
    storage: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = _run(("serve", "--listen", "127.0.0.1:0", "--storage", storage), files)

    assert code == MISTAKES["file"], capsys.readouterr().err


_LOCALES = {
    "C without coercion": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
}


@pytest.mark.parametrize("locale", _LOCALES)
def test_every_help_is_printed_in_every_locale(locale: str) -> None:
    """One process for all commands: each prints its help to the stream it was given."""
    script = (
        "import sys\n"
        "from instar.cli.main import COMMANDS, main\n"
        "for words in [['--help'], *([c, '--help'] for c in COMMANDS), ['serve', '--help-all'],\n"
        "              ['review', '--rules']]:\n"
        "    try:\n"
        "        code = main(words)\n"
        "    except SystemExit as left:\n"
        "        code = left.code\n"
        "    assert not code, words\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **_LOCALES[locale]},
        capture_output=True,
        timeout=120,
        check=False,
    )

    assert done.stderr == b""
    assert done.returncode == 0
    assert "…" in done.stdout.decode("utf-8"), "a pipe gets UTF-8, as from kubectl"


def test_a_terminal_without_the_characters_gets_their_ascii_spelling() -> None:
    prepare_streams()
    text = "a → b… \udcff"

    assert text.encode("latin-1", "instar.ascii") == b"a -> b... \\udcff"
