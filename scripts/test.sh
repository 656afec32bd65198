#!/usr/bin/env bash
# Installs what the tests need, then runs all checks: C++ unit tests, IR text tests, lint, Python
# tests, and builds the documentation's site (build/site).
#
#   scripts/test.sh [--full] [--no-metal]
#
# Needs Python >= 3.10 and g++ >= 12 (or clang >= 16). The script installs GoogleTest, clang (which
# checks rendered Metal source, and runs it and CUDA text on Linux), ccache and Chromium (which shows
# pages) by apt-get if this user may install packages. The summary names each missing tool and the
# tests that were skipped without it. Everything is written under build/.
#
#   --full   also: the C++ tests under AddressSanitizer and UBSan, those of threads under
#            ThreadSanitizer, clang-tidy over all files, more fuzzing, all tests that run on Metal, and
#            the tests against a wheel in an empty environment (scripts/test_wheel.sh).
#   --no-metal   not the tests that run on Metal: a Mac's GPU (scripts/test_metal.sh) or its emulator.
#
# Environment: PYTHON (interpreter, default python3), JOBS (default: number of cores).
set -u -o pipefail
cd "$(dirname "$0")/.."

full=0 metal=1
for argument in "$@"; do
  case "$argument" in
    --full) full=1 ;;
    --no-metal) metal=0 ;;
    -h | --help) sed -n '2,22s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test.sh: cannot understand \`$argument\`" >&2; exit 2 ;;
  esac
done

python=${PYTHON:-python3}
jobs=${JOBS:-$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)}
venv=$PWD/build/venv
tree=$PWD/build/test
summary=()
failed=0
started=$SECONDS

# step NAME COMMAND...: runs it, times it, remembers how it went.
step() {
  local name=$1 begin=$SECONDS status=0
  shift
  printf '\n==== %s\n' "$name"
  "$@" || status=$?
  if ((status == 0)); then
    summary+=("ok       $name ($((SECONDS - begin)) s)")
  else
    summary+=("FAILED   $name (exit status $status, $((SECONDS - begin)) s)")
    failed=1
  fi
  return $status
}

skip() {
  printf '\n==== %s: skipped, %s\n' "$1" "$2"
  summary+=("skipped  $1: $2")
}

finish() {
  printf '\n==== summary (%d s)\n' $((SECONDS - started))
  printf '%s\n' "${summary[@]}"
  if ((failed)); then echo "FAILED"; else echo "passed"; fi
  exit $failed
}

can_install() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; }

apt_updated=0
# apt_install PACKAGE...: the first one that can be had.
apt_install() {
  can_install || return 1
  if ((!apt_updated)); then
    apt-get update -qq || echo "test.sh: apt-get update failed; trying with the lists at hand" >&2
    apt_updated=1
  fi
  local package
  for package in "$@"; do
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
      >/dev/null && return 0
  done
  return 1
}

has_gtest() {
  local include=()
  command -v brew >/dev/null && include=(-I "$(brew --prefix)/include")
  echo '#include <gtest/gtest.h>' |
    "${CXX:-g++}" -std=c++20 ${include[@]+"${include[@]}"} -x c++ -E - >/dev/null 2>&1
}
has_any() {
  local name
  for name in "$@"; do command -v "$name" >/dev/null && return; done
  return 1
}
has_clang() { has_any clang++-19 clang++-18 clang++-17 clang++; }
# What tests/gpu_emulator needs.
has_emulator() { [[ $(uname) == Linux ]] && has_any clang++-19 clang++-18 clang++-17; }

install_system_packages() {
  command -v ccache >/dev/null || apt_install ccache || true
  has_gtest || apt_install libgtest-dev || true
  has_clang || apt_install clang-19 clang-16 clang || true
  has_any chromium chromium-browser google-chrome || apt_install chromium || true
}

check_tools() {
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || {
    echo "test.sh: cannot run without Python >= 3.10 ($python is $("$python" -V 2>&1))" >&2
    return 1
  }
  command -v "${CXX:-g++}" >/dev/null || {
    echo "test.sh: cannot build without ${CXX:-g++} (apt-get install g++)" >&2
    return 1
  }
}

make_venv() {
  [[ -x $venv/bin/pip ]] && return
  "$python" -m venv --clear "$venv" || {
    apt_install python3-venv && "$python" -m venv --clear "$venv"
  } || {
    echo "test.sh: cannot make a virtual environment (apt-get install python3-venv)" >&2
    return 1
  }
}

# One CMake tree gives the extension, rune-opt and the C++ tests, so the library is built once,
# optimised but with assertions. pip builds without isolation, so that the tree keeps its cmake and
# ninja from run to run.
install_package() {
  local strict=ON
  [[ $(uname) == Linux ]] || strict=OFF  # warnings of other compilers than CI's are no errors
  local set=--config-settings  # -C in newer versions of pip
  local options=($set=build-dir="$tree" $set=cmake.build-type=Release)
  options+=($set=cmake.define.CMAKE_CXX_FLAGS_RELEASE="-O2")
  options+=($set=cmake.define.RUNE_BUILD_TOOLS=ON $set=cmake.define.RUNE_WARNINGS_AS_ERRORS="$strict")
  options+=($set=cmake.define.RUNE_BUILD_TESTS="$1" $set=cmake.define.RUNE_METAL_EMULATOR="$2")
  "$venv/bin/pip" install -q --disable-pip-version-check \
    'scikit-build-core>=0.10' 'pybind11>=2.13' 'cmake>=3.22' ninja &&
    PATH=$venv/bin:$PATH CMAKE_BUILD_PARALLEL_LEVEL=$jobs "$venv/bin/pip" install -q \
      --disable-pip-version-check --no-build-isolation "${options[@]}" '.[test,examples,lint,docs]'
}

# Shows what failed, and how many passed.
run_ctest() {
  local status=0
  "$venv/bin/ctest" --test-dir "$tree" -j"$jobs" --output-on-failure >"$tree/ctest.log" || status=$?
  grep -Ev '^ *[0-9]+/[0-9]+ Test .* Passed|^ *Start +[0-9]+:' "$tree/ctest.log"
  return $status
}

run_lint() {
  local options=()
  ((full)) && options+=(--full)
  PATH=$venv/bin:$PATH JOBS=$jobs scripts/lint.sh ${options[@]+"${options[@]}"}
}

run_lit() {
  PATH=$venv/bin:$PATH RUNE_OPT=$tree/rune-opt RUNE_LIT_OUTPUT=$tree/lit \
    "$venv/bin/lit" --succinct -j"$jobs" tests/ir
}

run_pytest() {
  local options=(-n "$jobs" --dist worksteal -r s)
  ((full)) && options+=(--full)
  RUNE_OPT=$tree/rune-opt "$venv/bin/pytest" "${options[@]}" tests/python tests/fuzz
}

# A warning is an error.
build_site() {
  env -u RUNE_JIT_VERIFY NO_MKDOCS_2_WARNING=1 PATH="$venv/bin:$PATH" \
    "$venv/bin/mkdocs" build --strict --quiet
}

# A sample of the tests that run on other devices, with --full all of them (tests/conftest.py). Linux
# uses the extension that runs Metal on the emulator, macOS the installed one.
run_on_metal() {
  local options=(-n "$jobs" --dist worksteal -r s)
  ((full)) && options+=(--full)
  if [[ $emulator == ON ]]; then
    options+=(--sample 10)
    local -x PYTHONPATH=$tree/metal_emulator/package
    "$tree/metal_emulator/test_metal_validation" && "$tree/metal_emulator/test_metal_queue" || return
  fi
  RUNE_TEST_DEVICE=metal "$venv/bin/pytest" "${options[@]}" tests/python tests/fuzz
}

# The CUDA text of a small sample of these tests, compiled by clang and run on the fake driver
# (tests/cuda_fake).
run_on_cuda() {
  local -x RUNE_JIT_CUDA_DRIVER=$tree/cuda_fake.so RUNE_JIT_NVRTC=$tree/cuda_fake.so
  local -x RUNE_JIT_CUBLAS=off RUNE_FAKE_EMULATE=1 RUNE_TEST_DEVICE=cuda
  local options=(-n "$jobs" --dist worksteal -r s --sample 1) files=(tests/python tests/fuzz)
  if ((full)); then
    options=(-n "$jobs" --dist worksteal -r s --sample 2)
  else
    files=(tests/python/test_{nodes,kernels,grid_mappings,scalar_ops,ops,movement,narrow_contractions}.py)
    files+=(tests/python/test_{shared_panels,batched_loops,host_callbacks,corners,float_contract}.py)
  fi
  "$venv/bin/pytest" "${options[@]}" "${files[@]}"
}

# run_sanitized PRESET
run_sanitized() {
  local fixed_addresses=()
  # GCC 12's ThreadSanitizer cannot map its shadow memory where the kernel places programs at random.
  [[ $1 == tsan ]] && setarch -R true 2>/dev/null && fixed_addresses=(setarch -R)
  PATH=$venv/bin:$PATH && cmake --preset "$1" &&
    ${fixed_addresses[@]+"${fixed_addresses[@]}"} cmake --build --preset "$1" -j "$jobs" &&
    ${fixed_addresses[@]+"${fixed_addresses[@]}"} ctest --preset "$1" -j "$jobs"
}

# Every pass of every program is verified.
export RUNE_JIT_VERIFY=1
# What the gallery's programs leave when they are tested, of which the site is built.
export RUNE_DOCS_GALLERY=$tree/gallery

step "tools" check_tools || finish
step "system packages" install_system_packages
step "virtual environment" make_venv || finish

gtest=ON
has_gtest || gtest=OFF
echo "(the build that follows takes minutes and is quiet)"
emulator=ON
((metal)) && has_emulator || emulator=OFF
step "build and install" install_package $gtest $emulator || finish

if [[ $gtest == ON ]]; then
  step "C++ tests (ctest)" run_ctest
else
  skip "C++ tests" "GoogleTest was not found and could not be installed (apt-get install libgtest-dev)"
fi
step "IR text tests (lit)" run_lit
step "lint" run_lint
has_clang || skip "checks of Metal source" "no clang++ was found or could be installed (apt-get install clang-19)"
step "Python tests (pytest)" run_pytest
if [[ -x $venv/bin/mkdocs ]]; then
  step "documentation (mkdocs)" build_site
else
  skip "documentation" "mkdocs needs Python 3.11 or later"
fi
if ((!metal)); then
  skip "Metal" "--no-metal was given"
elif [[ $emulator == ON || $(uname) == Darwin ]]; then
  step "Metal (pytest)" run_on_metal
else
  skip "Metal" "its emulator needs clang++ 17 or later (apt-get install clang-19)"
fi

if [[ $gtest == ON ]] && has_emulator; then
  step "CUDA on the emulator (pytest)" run_on_cuda
else
  skip "CUDA on the emulator" "it needs Linux, GoogleTest and clang++ 17 or later (apt-get install clang-19 libgtest-dev)"
fi

if ((full)); then
  if [[ $gtest == ON ]]; then
    step "C++ tests with AddressSanitizer" run_sanitized asan
    step "C++ tests with ThreadSanitizer" run_sanitized tsan
  fi
  step "wheel in an empty environment" env PYTHON="$python" scripts/test_wheel.sh
fi
finish
