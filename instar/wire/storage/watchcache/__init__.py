"""The watch cache: current objects and a window of recent changes, followed from a store."""
