"""Server-side apply and field ownership, as generators that yield the conversions they need."""
