"""Writes the pages that are derived from code. Run by `make docs`; a test holds them current."""

from __future__ import annotations

from pathlib import Path

from nki import settings as nki_settings
from torch_neuronx import settings

DOCS = Path(__file__).resolve().parent


def env_vars_page() -> str:
    """The variables of all packages."""
    lines = [
        "",
        "## NKI",
        "",
        "Read by `src/nki/settings.py`.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| `{row.name}` | {row.default} | {row.meaning} |" for row in nki_settings.VARIABLES]
    return settings.as_markdown() + "\n".join(lines) + "\n"


PAGES = {"env_vars.md": env_vars_page}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
