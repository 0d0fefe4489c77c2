"""Server-side apply and field ownership (``managedFields``), as generators that yield the
conversions they need."""
