#!/usr/bin/env bash
# Tests and measures on a Mac's GPU, and writes a file to attach to an issue.
#
#   scripts/test_metal.sh [--full] [--no-benchmarks] [--installed]
#
#   --full           all tests that run on a device, not a sample (an hour)
#   --no-benchmarks  no comparison with MLX, which needs `pip install mlx` beforehand
#   --installed      test the package that $PYTHON imports, instead of building it in build/metal
#
# Prints which operations pass for which dtypes, the tests that fail, and the times of the standard
# workloads. All of it is in build/metal-report.txt, too. Needs macOS 14, Xcode's command line tools
# (xcode-select --install) and Python 3.10.
#
# Environment: PYTHON (default python3), JOBS (processes of pytest, default 4).
set -u -o pipefail
cd "$(dirname "$0")/.."

full=() benchmarks=1 installed=0
for argument in "$@"; do
  case "$argument" in
    --full) full=(--full) ;;
    --no-benchmarks) benchmarks=0 ;;
    --installed) installed=1 ;;
    -h | --help) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test_metal.sh: cannot understand \`$argument\`" >&2; exit 2 ;;
  esac
done
python=${PYTHON:-python3}
report=build/metal-report.txt
results=build/metal-tests.xml
mkdir -p build
rm -f "$report" "$results"

if ((!installed)); then
  if [[ $(uname) != Darwin ]]; then
    echo "test_metal.sh: cannot build for Metal on $(uname) (docs/metal.md: tests without a Mac)" >&2
    exit 2
  fi
  # MLX is found where it is installed.
  "$python" -m venv --system-site-packages build/metal || exit
  python=$PWD/build/metal/bin/python
  echo "(the build takes minutes and is quiet)"
  "$python" -m pip install -q --disable-pip-version-check '.[test]' || exit
fi

describe() {
  date -u +%Y-%m-%dT%H:%MZ
  git log -1 --format='commit %h' 2>/dev/null
  if [[ $(uname) == Darwin ]]; then
    sw_vers
    sysctl -n machdep.cpu.brand_string hw.memsize
    system_profiler SPDisplaysDataType | grep -E 'Chipset|Cores|Metal'
  fi
  "$python" -c 'import rune_jit; rune_jit.show_config()'
}

# The GPU computes at all: virtual ones have returned zeros.
probe() {
  "$python" - <<'END'
import numpy, rune_jit
x = numpy.arange(1000, dtype=numpy.float32)
result = rune_jit.jit(lambda x: x * 2 + 1, device="metal", fallback="error")(x)
assert (result == x * 2 + 1).all(), f"the GPU computes {result[:5]}..., not {x[:5] * 2 + 1}..."
print("the GPU computes")
END
}

run_tests() {
  RUNE_TEST_DEVICE=metal "$python" -m pytest -q -n "${JOBS:-4}" --tb=short -r fE \
    -p no:cacheprovider --junit-xml="$results" ${full[@]+"${full[@]}"} tests/python tests/fuzz
}

failed=0
{
  describe
  if probe; then
    echo; echo "==== tests"
    run_tests || failed=1
    echo; echo "==== operations"
    "$python" scripts/op_table.py "$results" || failed=1
    if ((benchmarks)); then
      echo; echo "==== benchmarks"
      "$python" benchmarks/run.py --device metal --output build/metal-benchmarks.md || failed=1
    fi
  else
    failed=1
  fi
  exit $failed
} 2>&1 | tee "$report"
failed=${PIPESTATUS[0]}
echo
echo "Please attach $report to an issue, whether or not all passed."
exit "$failed"
