"""The guide of a version's life works as it says, up and down again."""

from __future__ import annotations

from pathlib import Path

from tests.support.pages import DOCS, steps, walk, walked_steps

GUIDE = DOCS / "how-to" / "version-lifecycle.md"
PAGE = """
```console
$ echo "only $KUBECONFIG"   # on instar
only
$ echo counted
counted
$ echo counted
counted
```

```console kube-apiserver
$ echo counted
count…
```
"""


def test_the_guide_of_a_versions_life_works_as_it_says(tmp_path: Path) -> None:
    assert walk(GUIDE, tmp_path) > 50


def test_the_guide_says_of_each_step_whether_it_differs_on_a_kube_apiserver() -> None:
    written = list(steps(GUIDE.read_text()))

    assert sum(step.elsewhere for step in written) == 7
    assert sum(step.only_on_instar for step in written) == 5


def test_a_page_is_walked_on_a_named_cluster_with_the_words_for_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("$ false   # refused\n", ""))
    here, there = tmp_path / "here", tmp_path / "there"

    assert list(walked_steps(page, here)) == ["", "", ""]
    assert list(walked_steps(page, there, tmp_path / "kubeconfig")) == ["", ""]


def test_a_step_with_other_output_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\ntwo\n```\n")

    (told,) = walked_steps(page, tmp_path / "walk")

    assert told.startswith("$ echo one\none\n")
