"""`python -m neuron_explorer`."""

from __future__ import annotations

import sys

from neuron_explorer.cli import main

sys.exit(main())
