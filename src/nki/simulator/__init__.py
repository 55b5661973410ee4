"""What programs compute: memories, instruction semantics in NumPy, and replay. No prices here."""
