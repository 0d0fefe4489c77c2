"""``python -m tests.webhooks.webhook_process``: the test webhook as a process of its own.

Prints its ``spec.conversion`` as one line of JSON, then obeys lines on standard input:
``fault NAME`` (or ``fault -``) and ``count``, each answered by a line.
"""

from __future__ import annotations

import json
import sys

from tests.support.webhook import Webhook
from tests.webhooks.support import convert


def main() -> None:
    with Webhook(convert) as hook:
        print(json.dumps(hook.conversion()), flush=True)
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            if word == "fault":
                hook.fault = None if rest == "-" else rest
            print(hook.reviews, flush=True)


if __name__ == "__main__":
    main()
