"""The comment on a pull request: errors are never cut before notes, and one comment is updated in
place."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.cli.main import main
from instar.tools.reviewer.render.comment_budget import COMMENT, Section, fit, length
from instar.tools.reviewer.render.markdown import to_markdown
from instar.tools.reviewer.render.pull_request_comment import marker
from instar.tools.reviewer.report import CrdReview, Finding, Report, Severity
from tests.reviewer.widget import changed, drop, widget


def _finding(severity: Severity, crd: str, number: int) -> Finding:
    rule = f"{severity.value}-rule"
    return Finding(
        rule=rule,
        severity=severity,
        crd=crd,
        message=f"{severity.value} number {number} of {crd} " + "x" * 150,
        version="v1",
        path=f"spec.field{number}",
        details="- " + "old " * 100 + "\n+ " + "new " * 100,
    )


def _large(errors: int, notes: int) -> Report:
    """26 CRDs: the notes are in the first by name, the errors in the last, most are unchanged."""
    crds = [CrdReview(name=f"m{number}.example.com") for number in range(24)]
    noted = [_finding(Severity.INFO, "a.example.com", number) for number in range(notes)]
    bad = [_finding(Severity.ERROR, "z.example.com", number) for number in range(errors)]
    first = CrdReview(name="a.example.com", findings=tuple(noted))
    return Report(crds=(first, *crds, CrdReview(name="z.example.com", findings=tuple(bad))))


def test_every_error_is_shown_before_any_note() -> None:
    text = to_markdown(_large(errors=62, notes=163))

    assert length(text) <= COMMENT
    assert all(f"error number {number} of" in text for number in range(62))
    assert text.index("### Errors") < text.index("<details>")


def test_omitted_sections_are_counted_and_the_full_report_is_named() -> None:
    text = to_markdown(_large(errors=62, notes=2000), whole="The whole report is in `a.html`.")

    shown = text.count("| 🔵 |")
    last = text.splitlines()[-1]
    assert 0 < shown < 2000
    assert f"{2000 - shown} notes" in last
    assert last.endswith("The whole report is in `a.html`.")
    assert text.count("<details>") == text.count("</details>")


def test_unchanged_crds_are_one_line() -> None:
    text = to_markdown(_large(errors=1, notes=0))

    lines = [line for line in text.splitlines() if "m3.example.com" in line]
    assert len(lines) == 1
    assert lines[0].startswith("Nothing to report for 25 CRDs: ")


def test_a_finding_of_several_versions_is_one_row_that_counts_for_each() -> None:
    one = _finding(Severity.ERROR, "a.example.com", 1)
    crd = CrdReview(name="a.example.com", findings=(one, replace(one, version="v2")))

    assert to_markdown(Report(crds=(crd,))).count("| 🔴 |") == 1
    assert "2 errors" in to_markdown(Report(crds=(crd,)), most=700).splitlines()[-1]


@settings(deadline=None)
@given(
    sizes=st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.integers(1, 300), max_size=6)), max_size=8
    ),
    most=st.integers(500, 2000),
)
def test_a_comment_fits_and_keeps_or_counts_every_item(
    sizes: list[tuple[int, list[int]]], most: int
) -> None:
    sections = [
        Section(
            tuple((f"<{number}.{item}>" + "é" * size,) for item, size in enumerate(items)),
            f"thing{number}",
            priority,
            opening=("<details>",),
            closing=("</details>",),
        )
        for number, (priority, items) in enumerate(sizes)
    ]

    text = fit(sections, most)

    assert length(text) <= most
    assert text.count("<details>") == text.count("</details>")
    for number, (_, items) in enumerate(sizes):
        kept = sum(f"<{number}.{item}>" in text for item in range(len(items)))
        lost = len(items) - kept
        assert not lost or f"{lost} thing{number}" in text.splitlines()[-1]


class _FakeGitHub(ThreadingHTTPServer):
    """The three calls for comments; ``foreign`` comments may not be changed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[dict[str, Any]] = []
        self.foreign: set[int] = set()
        self.writable = True
        self.tokens: set[str] = set()


class _Handler(BaseHTTPRequestHandler):
    server: _FakeGitHub

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, code: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> Any:
        self.server.tokens.add(self.headers["Authorization"])
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        assert path == "/repos/acme/shop/issues/7/comments"
        page = int(query.rpartition("page=")[2])
        self._answer(200, self.server.comments[(page - 1) * 100 : page * 100])

    def do_POST(self) -> None:
        body = self._body()
        if not self.server.writable:
            self._answer(403, {"message": "Resource not accessible by integration"})
            return
        self.server.comments.append({"id": len(self.server.comments) + 1, "body": body})
        self._answer(201, self.server.comments[-1])

    def do_PATCH(self) -> None:
        number, body = int(self.path.rpartition("/")[2]), self._body()
        if number in self.server.foreign:
            self._answer(403, {"message": "not yours"})
            return
        self.server.comments[number - 1]["body"] = body
        self._answer(200, self.server.comments[number - 1])


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_FakeGitHub]:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    with _FakeGitHub() as fake:
        thread = threading.Thread(target=fake.serve_forever, daemon=True)
        thread.start()
        for name, value in {
            "GITHUB_API_URL": f"http://127.0.0.1:{fake.server_port}",
            "GITHUB_REPOSITORY": "acme/shop",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_TOKEN": "secret",
            "GITHUB_RUN_ID": "99",
        }.items():
            monkeypatch.setenv(name, value)
        yield fake
        fake.shutdown()
        thread.join()


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    """The CRD, one that breaks it, and the same again."""
    found = []
    for name, crd in (
        ("old.yaml", widget()),
        ("bad.yaml", changed(drop("spec", "note"))),
        ("same.yaml", widget()),
    ):
        (tmp_path / name).write_text(yaml.safe_dump(crd))
        found.append(str(tmp_path / name))
    return found[0], found[1], found[2]


def test_a_comment_is_posted_once_and_then_updated(
    github: _FakeGitHub, files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    github.comments = [{"id": number + 1, "body": "hello"} for number in range(150)]
    old, bad, _ = files

    first = main(["review", old, bad, "--comment"])
    second = main(["review", old, bad, "--comment"])

    assert (first, second) == (1, 1)
    assert len(github.comments) == 151
    assert github.comments[-1]["body"].startswith(marker(bad) + "\n## CRD review")
    assert github.tokens == {"Bearer secret"}
    told = capsys.readouterr().err.splitlines()
    assert [line.rpartition(" ")[2] for line in told] == ["posted", "updated"]


def test_a_clean_review_makes_no_new_comment(
    github: _FakeGitHub, files: tuple[str, str, str]
) -> None:
    old, _, same = files

    assert main(["review", old, same, "--comment"]) == 0
    assert github.comments == []


def test_the_comment_of_another_account_is_left_alone(
    github: _FakeGitHub, files: tuple[str, str, str]
) -> None:
    old, bad, _ = files
    github.comments = [{"id": 1, "body": marker(bad) + "\nnot ours"}]
    github.foreign = {1}

    main(["review", old, bad, "--comment"])

    assert github.comments[0]["body"].endswith("not ours")
    assert len(github.comments) == 2


def test_a_refused_comment_is_reported_and_the_verdict_is_kept(
    github: _FakeGitHub, files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    github.writable = False
    old, bad, _ = files

    assert main(["review", old, bad, "--comment"]) == 1

    [line] = capsys.readouterr().err.splitlines()
    assert "Resource not accessible by integration" in line
    assert "pull-requests: write" in line


def test_outside_of_a_job_the_missing_setting_is_named(
    files: tuple[str, str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.setenv("GITHUB_REPOSITORY", "acme/shop")
    monkeypatch.setenv("GITHUB_EVENT_PATH", "x")
    old, bad, _ = files

    assert main(["review", old, bad, "--comment"]) == 1

    assert "GITHUB_TOKEN is not set" in capsys.readouterr().err
