"""A whole kopf operator, run by kopf's own KopfRunner beside the test."""

import time
from pathlib import Path

import kopf.testing
import pytest

pytestmark = [
    pytest.mark.instar_crds("crds.yaml"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
OPERATOR = Path(__file__).with_name("operator_under_test.py")


def test_the_operator_writes_the_status(instar, instar_namespace):
    path = f"/apis/testing.example.com/v1/namespaces/{instar_namespace}/crontabs"
    crontab = {
        "apiVersion": "testing.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "nightly"},
        "spec": {"cronSpec": "0 3 * * *"},
    }

    with kopf.testing.KopfRunner(
        ["run", "-n", instar_namespace, "--standalone", str(OPERATOR)], timeout=30
    ) as runner:
        instar.request("POST", path, crontab)
        status = wait_for(lambda: instar.request("GET", f"{path}/nightly").json.get("status"))

    assert runner.exit_code == 0
    assert status["schedule"] == "0 3 * * *"


def wait_for(look, seconds=20):
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found
