"""`python -m bayesmf.cli`."""

import sys

from bayesmf.cli import main

sys.exit(main())
