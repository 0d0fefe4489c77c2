"""``instar adopt`` with instar in both roles."""
