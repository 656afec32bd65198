#!/usr/bin/env bash
# Runs the tests of the installed NumPy, first as they are, then with NumPy's functions jitted
# (tests/numpy_suite/jitted_calls.py). Renews the results of these files in the section "NumPy's own
# tests" of docs/conformance.md.
#
#   scripts/numpy_tests.sh [FILE...]    such as lib/tests/test_shape_base.py; default: all below
#
# Environment: PYTHON (interpreter, default python3).
set -u -o pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
reports=$root/build/numpy_tests
numpy=$("$python" -c 'import os, numpy; print(os.path.dirname(numpy.__file__))')
files=("$@")
if [ ${#files[@]} -eq 0 ]; then
  for name in einsum function_base half indexing item_selection multiarray numeric regression \
    scalarmath shape_base ufunc umath; do
    files+=("_core/tests/test_$name.py")
  done
  for name in arraypad arraysetops function_base histograms index_tricks nanfunctions polynomial \
    shape_base stride_tricks twodim_base type_check ufunclike; do
    files+=("lib/tests/test_$name.py")
  done
  files+=(linalg/tests/test_linalg.py)
fi

mkdir -p "$reports"
export PYTHONPATH=$root/tests/numpy_suite${PYTHONPATH:+:$PYTHONPATH} PYTHONWARNINGS=ignore
export NPY_AVAILABLE_MEM="1 GB"  # tests of huge arrays are skipped
for file in "${files[@]}"; do
  for run in plain jitted; do
    name=$run-$(echo "$file" | tr / -)
    RUNE_JIT_SUITE_RUN=$run RUNE_JIT_SUITE_REPORT=$reports/$name.json timeout 3600 \
      "$python" -m pytest -q -p no:cacheprovider -p jitted_calls --disable-warnings \
      "$numpy/$file" >"$reports/$name.txt" 2>&1
  done
  echo "$file"
  "$python" "$root/tests/numpy_suite/report.py" "$reports" "$root/docs/conformance.md" "$file"
done
