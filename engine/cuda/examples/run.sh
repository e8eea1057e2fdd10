#!/bin/sh
# Checks and measures the GPUs of this machine with the program next to this file; OUT is where the results go.
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here}
# Libraries that pip brought, where there is no toolkit.
found=$(python3 -c 'import glob, site, sys
roots = site.getsitepackages() + [site.getusersitepackages()] + sys.path
print(":".join(sorted({f for r in roots if r for f in glob.glob(r + "/nvidia/*/lib")})))' 2>/dev/null)
export STEPSCOPE_CUDA_LIBRARIES="${STEPSCOPE_CUDA_LIBRARIES:+$STEPSCOPE_CUDA_LIBRARIES:}$found"
export LD_LIBRARY_PATH="$found${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec timeout 480 "$here/gpu_check" "$out/gpu_check.json"
