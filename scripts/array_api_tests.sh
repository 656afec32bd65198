#!/usr/bin/env bash
# Runs the public test suite of the Python array API standard over rune_jit.numpy: eagerly, and with
# each function wrapped in rune_jit.jit. Writes docs/conformance.md.
#
#   scripts/array_api_tests.sh SUITE_CHECKOUT [pytest options]
#
# SUITE_CHECKOUT is a clone, with submodules, of https://github.com/data-apis/array-api-tests, whose
# requirements.txt is installed beside rune_jit. tests/array_api/skips.txt says what is skipped, and
# why.
#
# Environment: PYTHON (interpreter, default python3), EXAMPLES (a test, default 50).
set -u -o pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
suite=${1:?usage: array_api_tests.sh SUITE_CHECKOUT [pytest options]}
shift
python=${PYTHON:-python3}
examples=${EXAMPLES:-50}
reports=$root/build/array_api
skips=$root/tests/array_api/skips.txt

rm -rf "$reports" && mkdir -p "$reports"
touch "$reports/fallbacks.txt"
export ARRAY_API_TESTS_VERSION=2024.12 RUNE_JIT_FALLBACKS=$reports/fallbacks.txt
export PYTHONPATH=$root/tests/array_api${PYTHONPATH:+:$PYTHONPATH}
status=0
for module in rune_jit.numpy jitted_namespace; do
  echo "==== $module"
  (cd "$suite" && ARRAY_API_TESTS_MODULE=$module "$python" -m pytest array_api_tests -q \
    -p no:cacheprovider --disable-warnings --disable-deadline --max-examples "$examples" \
    --skips-file "$skips" --json-report --json-report-file "$reports/$module.json" \
    --json-report-omit collectors log streams warnings "$@") || status=1
done
"$python" "$root/tests/array_api/report.py" "$reports" "$skips" "$suite" "$examples" \
  "$root/docs/conformance.md" || status=1
exit $status
