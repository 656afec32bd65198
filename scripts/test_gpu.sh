#!/usr/bin/env bash
# Tests and measures on a machine with an NVIDIA card. The package is installed there, with what its
# tests need, and NVRTC (pip install '.[cuda,test]').
#
#   scripts/test_gpu.sh [--full] [--no-benchmarks]
#
# Runs the Python suite with the device set to cuda (a sample; with --full all of it), a sample of it
# under compute-sanitizer's memcheck and racecheck where that is installed, and the benchmarks
# against torch, JAX and CuPy, as far as they are installed, which write benchmarks/results_cuda.md.
#
# Environment: PYTHON (default python3), JOBS (processes of pytest, default 8).
set -u -o pipefail
cd "$(dirname "$0")/.."

full=() benchmarks=1
for argument in "$@"; do
  case "$argument" in
    --full) full=(--full) ;;
    --no-benchmarks) benchmarks=0 ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test_gpu.sh: cannot understand \`$argument\`" >&2; exit 2 ;;
  esac
done
python=${PYTHON:-python3}
jobs=${JOBS:-8}
failed=0

step() {
  local name=$1 begin=$SECONDS
  shift
  printf '\n==== %s\n' "$name"
  "$@" && echo "ok: $name ($((SECONDS - begin)) s)" && return
  echo "FAILED: $name ($((SECONDS - begin)) s)"
  failed=1
}

# Freed memory goes back to the driver, so that the tools see each use of it.
sanitized() {
  RUNE_JIT_ALLOCATOR_CACHE_MIB=0 compute-sanitizer --tool "$1" --error-exitcode 7 \
    "$python" -m pytest -q -x -p no:cacheprovider "${@:2}"
}

export RUNE_JIT_VERIFY=1
"$python" -c 'import rune_jit; rune_jit.show_config(); assert "cuda" in rune_jit.devices()' || exit
step "device" "$python" -m pytest -q tests/python/test_cuda_device.py
RUNE_TEST_DEVICE=cuda step "suite on the card" \
  "$python" -m pytest -q -n "$jobs" ${full[@]+"${full[@]}"} tests/python tests/fuzz
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    RUNE_TEST_DEVICE=cuda step "$tool" sanitized "$tool" tests/python/test_nodes.py \
      tests/python/test_kernels.py
  done
else
  echo "skipped memcheck and racecheck: compute-sanitizer is not installed"
fi
((benchmarks)) && step "benchmarks" "$python" benchmarks/run.py --device cuda
exit $failed
