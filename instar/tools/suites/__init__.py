"""``instar test``: runs unit tests of CRDs, written as YAML.

Called by ``cli/commands/test.py`` and the pytest plugin; an embedded server answers the requests of
a case.
"""
