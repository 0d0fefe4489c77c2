"""Requests for objects: what is asked, in which form, and the answer's bytes."""
