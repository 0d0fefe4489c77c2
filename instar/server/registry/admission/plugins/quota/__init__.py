"""ResourceQuota: the admission plugin, the usage of objects, and running totals per namespace."""
