"""Which model, and which rank? `compare` asks the data."""
