"""``instar test``: runs unit tests of CRDs, written as YAML."""
