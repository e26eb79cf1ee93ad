#!/bin/bash
# On a machine with a GPU: writes what it computes to $1.gz, every byte of it (default results.whole.txt, beside this
# script). BIN is `gsan-differ`; default: this tree's release build. A minute or so.
# At home: `gunzip`, then `gsan-differ shrink results.whole.txt results.h200.txt`.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=${BIN:-$here/../../target/release/gsan-differ}
out=${1:-$here/results.whole.txt}
GSAN_DIFFER_WHOLE=1 GSAN_DEVICE=cuda GSAN_DIFFER=$here "$bin" record "$out" && gzip -9 -f "$out"
