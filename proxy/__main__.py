"""`python -m proxy` is `streamfrom`."""

import sys

from proxy.cli import main


sys.exit(main())
