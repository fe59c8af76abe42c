# SPDX-License-Identifier: Apache-2.0
"""Python imports this in Ray's workers: while the test's gate is closed, no shard begins after one is done."""

import os
import time

gate = os.environ.get("RAY_TEST_GATE")
if gate:
    from tensorcast import checkpoint

    run_shard = checkpoint.run_shard

    def behind_the_gate(output, *arguments, **options):
        while not os.path.exists(gate) and any(shard.done_before for shard in checkpoint.status(output).shards):
            time.sleep(0.05)
        return run_shard(output, *arguments, **options)

    checkpoint.run_shard = behind_the_gate
