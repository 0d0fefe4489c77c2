"""Conversion of objects between API versions: None, webhook or in process, behind one seam."""
