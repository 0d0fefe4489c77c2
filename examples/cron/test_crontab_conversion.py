from __future__ import annotations

from pathlib import Path

import yaml
from crontab_conversion import crontab

from instar.testing import assert_converter

HERE = Path(__file__).parent


def test_no_law_of_conversion_is_broken() -> None:
    assert_converter(HERE / "crd.yaml", crontab, examples=50)


def test_the_sample_converts_as_expected() -> None:
    sample = yaml.safe_load((HERE / "sample.yaml").read_text())

    [converted] = crontab.build().convert_all([sample], "stable.example.com/v2")

    assert converted["spec"] == {
        "min": "*",
        "hour": "*",
        "dayOfMonth": "*",
        "month": "*",
        "dayOfWeek": "*/5",
        "image": "my-awesome-cron-image",
    }
