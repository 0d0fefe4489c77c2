"""Which files of a folder are manifests, and how their texts are read."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from instar.tools.manifest_files import Text, Unopenable, files_of, text_of, texts_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.yaml", "a.yml", "deep/c.json", "notes.txt", ".hidden.yaml", ".git/d.yaml"):
        file = tmp_path / "all" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"name: {name}\n")
    return tmp_path / "all"


def test_a_folder_is_its_manifests_in_the_order_of_names(folder: Path) -> None:
    found = [str(file.relative_to(folder)) for file in files_of(folder)]

    assert found == ["a.yml", "b.yaml", "deep/c.json"]


def test_a_folder_that_lies_in_a_hidden_one_is_read_all_the_same(folder: Path) -> None:
    assert [file.name for file in files_of(folder / ".git")] == ["d.yaml"]


def test_a_file_that_is_named_counts_whatever_it_is_called(folder: Path) -> None:
    assert list(texts_of(folder / "notes.txt")) == [
        Text(str(folder / "notes.txt"), "name: notes.txt\n")
    ]


@pytest.mark.parametrize("pattern", ["a.yml", "*.yml", "all/a.*"])
def test_excluded_files_are_not_opened(folder: Path, pattern: str) -> None:
    (folder / "a.yml").write_bytes(b"\xff\xfe")

    found = [Path(file).name for file, _ in texts_of(folder, exclude=[pattern])]

    assert found == ["b.yaml", "c.json"]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("kind: A\n"))

    assert list(texts_of("-")) == [("<stdin>", "kind: A\n")]


def test_a_folder_without_manifests_holds_no_texts(tmp_path: Path) -> None:
    assert list(texts_of(tmp_path)) == []


def test_the_file_of_a_folder_that_is_not_text_is_named(folder: Path) -> None:
    (folder / "b.yaml").write_bytes(b"\xff\xfe")

    with pytest.raises(Unopenable, match=r"all/b\.yaml: not a text file$"):
        list(texts_of(folder))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unopenable, match=r"gone\.yaml: No such file or directory$"):
        list(texts_of(tmp_path / "gone.yaml"))


def test_exact_reading_keeps_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"a: 1\r\n")

    assert text_of(tmp_path / "a.yaml") == "a: 1\n"
    assert text_of(tmp_path / "a.yaml", exact=True) == "a: 1\r\n"
