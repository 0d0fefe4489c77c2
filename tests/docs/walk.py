"""Walk a page of the documentation on any cluster, step by step, and say which steps differ.

``python -m tests.docs.walk docs/how-to/version-lifecycle.md --kubeconfig FILE``. The page makes
CRDs and objects and leaves them there, so take a cluster for the purpose. Steps that it marks with
``# on instar`` are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.pages import walked_steps


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.walk")
    parser.add_argument("page", type=Path)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    given = parser.parse_args()
    done = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for told in walked_steps(given.page, Path(folder), given.kubeconfig):
            done += 1
            wrong += bool(told)
            if told:
                print(f"differs: {told}\n", flush=True)
    print(f"{done - wrong} of {done} steps as the page says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
