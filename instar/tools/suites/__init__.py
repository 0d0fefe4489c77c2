"""``instar test``: unit tests of a CRD, written as YAML beside it."""
