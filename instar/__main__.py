"""``python -m instar``."""

import sys

from instar.cli.main import main

sys.exit(main())
