"""How many words of a transcript are wrong."""

from __future__ import annotations

import unicodedata


def words(text: str) -> list[str]:
    """The words in lower case, without punctuation."""
    kept = [
        character
        for character in unicodedata.normalize("NFC", text.lower())
        if character.isspace() or unicodedata.category(character)[0] in "LMN"
    ]
    return "".join(kept).split()


def wrong_words(heard: str, said: str) -> int:
    """The fewest words to replace, insert or delete to turn `heard` into `said`."""
    target = words(said)
    row = list(range(len(target) + 1))
    for number, word in enumerate(words(heard), start=1):
        diagonal, row[0] = row[0], number
        for column, wanted in enumerate(target, start=1):
            changed = diagonal + (word != wanted)
            diagonal = row[column]
            row[column] = min(changed, row[column] + 1, row[column - 1] + 1)
    return row[-1]
