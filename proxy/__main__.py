"""`python -m streamfrom.proxy` is `streamfrom`."""

import sys

from streamfrom.proxy.cli import main


sys.exit(main())
