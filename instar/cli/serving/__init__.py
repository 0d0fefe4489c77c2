"""Parts of ``instar serve``, ``webhook`` and ``envtest``: flags to settings, worker processes."""
