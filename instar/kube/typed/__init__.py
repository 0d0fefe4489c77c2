"""Objects of built-in kinds as Go reads and shows them: types checked, unknown fields told,
quantities and times in the one form they are kept in.

Driven by the tables of ``facts/``. Knows no rule of any kind.
"""
