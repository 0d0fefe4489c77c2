"""The shipped data: made by the script, small, and read only when asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

from instar.kube.facts.block_file import DATA, BlockFile
from tests.support.builtins import BUILTINS, needs_builtins

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make-facts"


@needs_builtins
def test_the_shipped_data_is_what_the_script_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main = run_path(str(SCRIPT))["main"]
    monkeypatch.setitem(main.__globals__, "DATA", tmp_path)
    main(BUILTINS)
    assert "types.shelf" in capsys.readouterr().out
    for name in ("types.shelf", "messages.shelf"):
        made, shipped = BlockFile(name), BlockFile(name)
        made._path = tmp_path / name
        assert made.names() == shipped.names()
        for block in shipped.names():
            assert made.note(block) == shipped.note(block)
            assert made.block(block) == shipped.block(block)
    for path in DATA.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_the_script_says_how_it_is_called() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "usage: scripts/make-facts FOLDER" in done.stderr


def test_the_shipped_data_is_small_text_with_a_line_for_each_type() -> None:
    texts = [path.read_text(encoding="ascii") for path in DATA.iterdir()]

    assert sum(map(len, texts)) < 600_000
    assert max(len(line) for text in texts for line in text.splitlines()) < 20_000


def test_nothing_is_read_at_import_and_little_for_one_kind() -> None:
    program = """
import tracemalloc
from instar.kube.facts import messages, resources, types
tracemalloc.start()
assert not messages._SHELF._blocks and not types._SHELF._blocks
types.schema_of("apps/v1", "Deployment")
messages.fields_of(messages.message_of("apps/v1", "Deployment"))
print(tracemalloc.get_traced_memory()[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 2_000_000
