"""`python -m tests.e2e.cluster.small_limit BYTES …`: the real command line with a lower limit of sizes.

The limit is no setting, since only what Argo takes can be right; a suite that passes the real one would run
for hours.
"""

from __future__ import annotations

import sys

from argo_harbor.cli.main import main
from argo_harbor.workflow import limits, split

if __name__ == "__main__":
    limits.MAX_WORKFLOW_BYTES = split.MAX_WORKFLOW_BYTES = int(sys.argv.pop(1))
    sys.exit(main())
