#!/usr/bin/env bash
#
# Fuzzing: libFuzzer against what strangers' bytes and models' answers reach first.
#
#   scripts/fuzz.sh [target] [seconds]
#
# Without a target all of fuzz/targets, one after the other, each for ten minutes unless told otherwise. It needs a C++ compiler, and
# Rust's own nothing but the stable toolchain. What is learnt stays in fuzz/corpus (throw it away whenever you like), and an input that
# makes a target fall in fuzz/findings; fuzz/target/…/fuzz/TARGET FILE tries it again. The exit code is 1 when something fell.
#
# An input may take 2 GiB of memory, as a parser may in the service, and 20 seconds: FUZZ_MEMORY (MiB) and FUZZ_TIMEOUT (seconds) say otherwise.
# FUZZ_JOBS targets run at once, one unless told otherwise.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz"

wanted=${1:-}
seconds=${2:-600}
# "scripts/fuzz.sh 60" is short for all targets.
if [[ $wanted =~ ^[0-9]+$ && $# == 1 ]]; then
    seconds=$wanted
    wanted=
fi
memory=${FUZZ_MEMORY:-2048}
timeout=${FUZZ_TIMEOUT:-20}
jobs=${FUZZ_JOBS:-1}

targets=()
for file in targets/*.rs; do
    name=$(basename "$file" .rs)
    if [[ -z $wanted || $wanted == "$name" ]]; then targets+=("$name"); fi
done
if [[ ${#targets[@]} == 0 ]]; then
    printf '%s: there is no target %s in fuzz/targets\n' "${0##*/}" "$wanted" >&2
    exit 2
fi

# What libFuzzer needs of the compiler: counters for each branch, the table of where they are, and what is compared. With a target
# triple they are for our own code only, not for build scripts.
host=$(rustc -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares"
export RUSTFLAGS="${RUSTFLAGS:-} ${coverage//$'\n'/ }"
unset CARGO_TARGET_DIR
bins=()
for name in "${targets[@]}"; do bins+=(--bin "$name"); done
cargo build --package lectern-fuzz --profile fuzz --locked --target "$host" --target-dir target "${bins[@]}"

# A parser has a stack of 64 MiB in the service.
ulimit -s $((64 << 10)) 2>/dev/null || printf '%s: the stack stays at %s KiB\n' "${0##*/}" "$(ulimit -s)" >&2
ulimit -c 0

mkdir -p findings
fallen=findings/fallen
: >"$fallen"

# One target, and what is worth telling of it.
run_target() {
    local name=$1 seeds=() dictionary=()
    mkdir -p "corpus/$name" "findings/$name"
    if [[ -d seeds/$name ]]; then seeds=("seeds/$name"); fi
    if [[ -f dictionaries/$name.dict ]]; then dictionary=("-dict=dictionaries/$name.dict"); fi
    if ! "target/$host/fuzz/$name" "corpus/$name" "${seeds[@]}" "${dictionary[@]}" \
        -max_total_time="$seconds" -rss_limit_mb="$memory" -timeout="$timeout" -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="findings/$name/" >"findings/$name.log" 2>&1; then
        printf '%s\n' "$name" >>"$fallen"
    fi
    printf '\n==> %s, %s s\n%s\n' "$name" "$seconds" "$(
        grep -E '^(stat::number_of_executed_units|stat::peak_rss_mb|SUMMARY|Test unit written)|panicked at' "findings/$name.log" | tail -n 6
    )"
}

for name in "${targets[@]}"; do
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
    run_target "$name" &
done
wait

if [[ -s $fallen ]]; then
    printf '\nfell: %s; see fuzz/findings\n' "$(paste -sd ' ' "$fallen")"
    exit 1
fi
printf '\nnothing fell\n'
