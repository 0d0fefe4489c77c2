"""Parts of ``instar serve``, ``webhook`` and ``envtest``: groups of flags and worker processes."""
