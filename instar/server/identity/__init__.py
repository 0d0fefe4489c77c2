"""Who somebody is, by what they show: tokens of ours, of issuers elsewhere, certificates.

Nothing here knows HTTP or a store: objects are looked up, and keys fetched, by whoever is handed
in. What somebody may do is ``access/``'s.
"""
