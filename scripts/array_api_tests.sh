#!/usr/bin/env bash
# Runs the public test suite of the Python array API standard over rune_jit.numpy: eagerly, and with
# each function wrapped in rune_jit.jit. Writes the counts of docs/conformance.md.
#
#   scripts/array_api_tests.sh SUITE_CHECKOUT [--max-examples N] [-k EXPRESSION]
#
# SUITE_CHECKOUT is a clone, with submodules, of https://github.com/data-apis/array-api-tests whose
# requirements.txt is installed beside rune_jit. tests/array_api/skips.txt says what is skipped, and
# why.
set -u -o pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
suite=${1:?"usage: array_api_tests.sh SUITE_CHECKOUT [pytest options]"}
shift
python=${PYTHON:-python3}
reports=$root/build/array_api
mkdir -p "$reports"
export ARRAY_API_TESTS_VERSION=2024.12 PYTHONPATH=$root/tests/array_api${PYTHONPATH:+:$PYTHONPATH}

# Each report: pytest's options that chose the tests, then one JSON document.
for module in rune_jit.numpy jitted_namespace; do
  (cd "$suite" && ARRAY_API_TESTS_MODULE=$module "$python" -m pytest array_api_tests -q \
    -p no:cacheprovider --disable-deadline --derandomize --max-examples 20 \
    --skips-file "$root/tests/array_api/skips.txt" \
    --json-report --json-report-file "$reports/$module.json" "$@") | tail -n 40
done
"$python" "$root/tests/array_api/report.py" "$reports" "$root/tests/array_api/skips.txt" \
  "$root/docs/conformance.md"
