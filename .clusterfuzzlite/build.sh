#!/usr/bin/env bash
# Builds the fuzzers into $OUT, as OSS-Fuzz and ClusterFuzzLite ask: each program, its seeds as NAME_seed_corpus.zip, and
# the libraries of the system in lib/, as programs run where these are not installed. It runs in $SRC/tensorcast.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$SRC/tensorcast"
source scripts/sourced/fuzz-seeds

# The flags of the environment want clang's own C++ library, for which the system's libraries are not made; CMake sets the
# sanitizer and the fuzzer by TENSORCAST_SANITIZE.
unset CFLAGS CXXFLAGS
case ${SANITIZER:-address} in
  address) checks=address ;;
  undefined) checks=undefined ;;
  *) echo "build.sh: no build for SANITIZER=$SANITIZER" >&2; exit 1 ;;
esac
build=${WORK:-build}/fuzzers
cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTENSORCAST_SANITIZE="$checks" \
  -DTENSORCAST_BUILD_FUZZERS=ON -DTENSORCAST_BUILD_INTEGRATIONS=OFF -DTENSORCAST_BUILD_BENCHMARKS=OFF \
  -DTENSORCAST_BUILD_EXAMPLES=OFF
cmake --build "$build" --target fuzzers

mkdir -p "$OUT/lib"
while IFS=$'\t' read -r name binary folder; do
  cp "$binary" "$OUT/$name"
  ldd "$binary" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | grep -v -E '/(libc|libm|ld-linux[^/]*|libpthread|libdl|librt)\.so' |
    xargs -r cp -t "$OUT/lib"
  patchelf --set-rpath '$ORIGIN/lib' "$OUT/$name"
  mapfile -t seeds < <(seeds_of "$name" "$folder")
  [[ ${#seeds[@]} -eq 0 ]] || zip -q -r "$OUT/${name}_seed_corpus.zip" "${seeds[@]}"
done < "$build/fuzzers.txt"
