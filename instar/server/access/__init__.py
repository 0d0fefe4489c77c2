"""Who asks, and whether they may: the HTTP side of identity and authorisation."""
