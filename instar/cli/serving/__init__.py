"""Parts of ``instar serve``, ``webhook`` and ``envtest``: groups of flags and worker processes.

Most of it is called by ``cli/commands/serve.py``; some flags and the reload by ``webhook``.
"""
