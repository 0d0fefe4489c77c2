"""REST layer: requests for objects, from options and bodies to the bytes of the response."""
