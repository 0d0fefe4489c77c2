"""Runs ``instar review`` in a job process, on texts and objects that the console process sends.

Called by ``worker.py``.
"""

from __future__ import annotations

from typing import Any

import orjson

from instar.base.json_values import Object
from instar.kube.api.encoding.manifests import Document
from instar.tools.reviewer.added_removed import with_presence, without_unread
from instar.tools.reviewer.engine import ReviewOptions
from instar.tools.reviewer.render import MACHINE
from instar.tools.reviewer.render.json import as_dict
from instar.tools.reviewer.report import Report
from instar.tools.reviewer.reviewing import review_documents
from instar.tools.reviewer.sources import LoadedCrds, crds_in_text


def run_review(work: Object) -> Any:
    """Return the report as JSON, or as text in another format."""
    old = None if work["old"] is None else _side(work["old"])
    new = _side(work["new"])
    stored: list[Object] = work["objects"]
    options = ReviewOptions()
    report = review_documents(
        None if old is None else old.crds,
        new.crds,
        options,
        witnesses=bool(work["witnesses"]),
        objects=(lambda crd: stored) if stored else None,
    )
    problems = [*([] if old is None else old.problems), *new.problems, *report.problems]
    whole = Report(
        crds=report.crds,
        only_old=report.only_old,
        only_new=report.only_new,
        problems=tuple(dict.fromkeys(problems)),
    )
    whole = without_unread(whole, old=bool(old and old.problems), new=bool(new.problems))
    whole = with_presence(
        whole, {} if old is None else old.crds, new.crds, options, removed=old is not None
    )
    if work["form"] == "json":
        # Round-trip through JSON, because some values only have a text form.
        return orjson.loads(orjson.dumps(as_dict(whole), default=str))
    return MACHINE[work["form"]](whole)


def _side(side: Object) -> LoadedCrds:
    if side.get("document") is not None:
        name = str(side["name"])
        return LoadedCrds({name: Document(side["document"], f"kube:{name}")})
    return crds_in_text(str(side["text"]), str(side["name"]))
