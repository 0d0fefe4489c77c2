"""The hunt for data loss: laws every conversion should keep, and objects that break them."""
