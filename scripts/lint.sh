#!/usr/bin/env bash
# Checks the sources without running them. scripts/test.sh calls it; on its own it needs the tools of
# `pip install '.[lint]'` on PATH and the package installed.
#
#   scripts/lint.sh [--fix | --full]
#
#   --fix    format the sources, mend what ruff can mend and write python/rune_jit/_core.pyi
#   --full   run clang-tidy over all C++ files (minutes) instead of at most 24 that differ from main
#
# Environment: BUILD (a CMake tree with compile_commands.json, for clang-tidy; default: one that is
# configured in build/lint), JOBS (default: number of cores).
set -u -o pipefail
cd "$(dirname "$0")/.."

mode=${1:-check}
case "$mode" in
  check | --fix | --full) ;;
  -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "lint.sh: cannot understand \`$mode\`" >&2; exit 2 ;;
esac
build=${BUILD:-}
jobs=${JOBS:-$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)}
most_tidied=24  # files, without --full: some five seconds each
failed=()

# check NAME COMMAND...: runs it, says how long it took, shows its output only if it fails.
check() {
  local name=$1 begin=$SECONDS output
  shift
  if output=$("$@" 2>&1); then
    echo "ok      $name ($((SECONDS - begin)) s)"
  else
    printf '%s\nFAILED  %s (%d s)\n' "$output" "$name" $((SECONDS - begin))
    failed+=("$name")
  fi
}

# Files that git knows or would add, so that a new file is checked before it is committed.
sources() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [[ -e $f ]] && echo "$f"; done; }

format_cpp() {
  sources 'cpp/*.cpp' 'cpp/*.h' 'metal/*.cpp' 'metal/*.h' 'metal/*.mm' 'tests/*.cpp' 'tests/*.h' \
    'tests/*.mm' | xargs clang-format "$@"
}

# The C++ files of cpp/ that differ from where this branch left main, or of the last commit on main.
changed_cpp() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null) || return 0
  [[ $base == "$(git rev-parse HEAD)" ]] && base=HEAD~1
  git diff --name-only --diff-filter=d "$base" -- 'cpp/*.cpp' 2>/dev/null
}

tidy() {
  local files
  if [[ $mode == --full ]]; then files=$(sources 'cpp/*.cpp'); else files=$(changed_cpp | head -n "$most_tidied"); fi
  [[ -n $files ]] || return 0
  if [[ -z $build ]]; then  # where each file is compiled alone
    build=build/lint
    cmake -S . -B $build -G Ninja -D CMAKE_EXPORT_COMPILE_COMMANDS=ON -D RUNE_BUILD_TOOLS=ON \
      -D Python_EXECUTABLE="$(command -v python)" -D pybind11_DIR="$(python -m pybind11 --cmakedir)" || return
  fi
  # xargs fails if any run does. clang-tidy counts suppressed warnings on stderr.
  xargs -P "$jobs" -n 1 clang-tidy -p "$build" --quiet <<<"$files" 2>/dev/null
}

if [[ $mode == --fix ]]; then
  ruff check --fix .
  ruff format .
  format_cpp -i
  python scripts/core_stub.py --write
  exit
fi

check "ruff check" ruff check --quiet .
check "ruff format" ruff format --check --quiet .
check "clang-format" format_cpp --dry-run -Werror
check "import-linter" lint-imports --no-cache
check "_core.pyi" python scripts/core_stub.py
check "mypy" mypy --no-error-summary
check "clang-tidy" tidy

if ((${#failed[@]})); then
  echo "lint.sh: failed: ${failed[*]}. \`scripts/lint.sh --fix\` mends formatting and the stub" >&2
  exit 1
fi
