#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 40 s
# Dangerous programs (hazards.py) give the same output and status under kxray's default options as without it, and the
# trace has exactly the calls that they count. `make hazards` runs more of each, in more ways.
. "$(dirname "$0")/../lib.sh"

tests/hazards/run.py --short --jobs 3
