"""What chains found: draws, predictions, diagnostics, files."""
