"""``instar validate``: manifests judged as a server would judge them, without one to be seen."""
