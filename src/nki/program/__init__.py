"""A kernel as data: tensors, instructions, loops and the rules they obey. Nothing runs here."""
