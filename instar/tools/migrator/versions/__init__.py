"""The versions of one CRD: their state, the safe next steps, and the edits for these steps.

Called by ``instar versions``, ``instar fields`` and the console.
"""
