"""The versions of one CRD: their state, what may be done next, and the edits that do it.

Called by ``instar versions``, ``instar fields`` and the console.
"""
