"""What a kernel becomes: tensors, instructions, loops and the rules they obey. Nothing runs here."""
