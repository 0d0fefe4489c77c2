"""The edge of the audit: requests followed, events put down, a log and a webhook that take them.

What is recorded, and in which words, is ``instar/audit``'s. Loaded only where a policy was given.
"""
