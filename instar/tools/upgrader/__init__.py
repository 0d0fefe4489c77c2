"""New CRDs brought to a cluster: reviewed, applied, migrated, proven, or taken back.

Stands above the reviewer and the migrator and knows both; knows no flag and prints nothing.
"""
