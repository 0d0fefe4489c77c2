"""The structural schema: how it is parsed, judged, walked and interned."""
