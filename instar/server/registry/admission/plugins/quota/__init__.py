"""ResourceQuota: the admission plugin, the usage of objects, and running totals per namespace.

``lifecycle/admission_setup.py`` creates the plugin; the quota controller
(``server/registry/controllers/quotas.py``) uses the totals.
"""
