"""New CRDs brought to a cluster: reviewed, applied, migrated, proven, or taken back.

Built on the reviewer and the migrator. Flags and output are the command's.
"""
