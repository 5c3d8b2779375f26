#!/usr/bin/env bash
# The GPU kernels on a machine with a GPU: bench/run.sh gpu. Builds them (nvcc), runs them all, says what was seen, and closes with one
# line of JSON. Raw output: bench/results/<date>-<model>.json. Exits 3 where there is no GPU, 1 when a check failed or a planted flip was
# missed. SECONDS_EACH (10) per product, EDGES ("4096 8192 16384"), NVCC_JOBS (2).
#
# Building needs nvcc and all that muster is built with, which is installed where it is missing (scripts/deps.sh build): so a network or a
# prepared machine. Where there is none, bring the program along and build nothing: MUSTER_ACCEPT_GPU=/path/of/muster-accept-gpu bench/run.sh gpu. It comes from scripts/build-gpu-package.sh
# (a .deb: dpkg-deb -x FILE.deb FOLDER, then FOLDER/usr/lib/muster) or from build-gpu of another machine, which must not have a newer glibc:
# that script's has Debian 13's, 2.41; on an older machine use one built with nvcc on Debian 12 (2.36). Beside it the folder bench, python3
# and the driver are needed, cuBLASLt and NCCL where their checks shall run.
set -uo pipefail
program=${MUSTER_ACCEPT_GPU:-build-gpu/muster-accept-gpu}
seconds=${SECONDS_EACH:-10}
edges=${EDGES:-4096 8192 16384}
no() { echo "$1" >&2; echo "{\"benchmark\":\"gpu\",\"outcome\":\"unavailable\",\"why\":\"$1\"}"; exit 3; }

nvidia-smi -L 2>/dev/null | grep -q '^GPU ' || no "no GPU: nvidia-smi lists none"
if [[ -z ${MUSTER_ACCEPT_GPU:-} ]]; then
  [[ -x $(PATH=$PATH:/usr/local/cuda/bin command -v nvcc) ]] || no "no nvcc in PATH or /usr/local/cuda/bin, and MUSTER_ACCEPT_GPU names no program"
  build() { cmake --preset gpu && cmake --build build-gpu --target muster-accept-gpu -j "${NVCC_JOBS:-2}"; }
  { build || { scripts/deps.sh build && build; }; } >&2 || no "the GPU kernels do not build"
fi
"$program" --version >&2 || no "$program does not start here"

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
run() {  # run LABEL ARGUMENTS...: one line {label, exit, result} each
  local label=$1 out status
  shift
  out=$("$program" "$@" 2>&1)
  status=$?
  out=$(grep '^{' <<<"$out" | tail -n 1)
  printf '{"label":"%s","exit":%d,"result":%s}\n' "$label" "$status" "${out:-null}" >>"$lines"
  echo "$label: exit $status" >&2
}

for format in bf16 fp8; do
  for edge in $edges; do run "gemm $format $edge" gemm --compare --format "$format" --n "$edge" --seconds "$seconds"; done
done
for format in fp16 tf32 int8 fp64; do run "gemm $format 8192" gemm --format "$format" --n 8192 --seconds "$seconds"; done
for kernel in own cublaslt; do
  for format in bf16 fp8; do run "sdc $format $kernel" sdc --format "$format" --kernel "$kernel" --seconds "$seconds"; done
done
for format in fp16 tf32 int8 fp64; do run "sdc $format cublaslt" sdc --format "$format" --kernel cublaslt --seconds "$seconds"; done
# Every place where a bit can be planted, once and for good: each must be seen (exit 1).
for kernel in own cublaslt; do
  for site in 0 1 2 3 4; do
    [[ $kernel == cublaslt && ( $site == 2 || $site == 3 ) ]] && continue
    # The sign of a bf16 input; bit 12 of an fp32 sum.
    bit=$([[ $site -lt 2 ]] && echo 15 || echo 28)
    run "flip $kernel $site" sdc --kernel "$kernel" --n 1024 --seconds 0 --inject-flip "$site:4711:$bit"
    run "flip $kernel $site once" sdc --kernel "$kernel" --n 1024 --seconds 0 --inject-flip "$site:4711:$bit" --flip-once
  done
done
run "memory" memory --seconds "$seconds"
run "flip memory" memory --rounds 1 --max-mib 1024 --inject-flip 0:12345:17
run "copies" copies
run "flip copies" copies --mib 64 --inject-flip 0:12345:3
run "nccl" nccl
run "nccl one rank" nccl --gpus 0
run "flip nccl" nccl --gpus 0 --mib 1 --inject-flip 0:100:20
run "training" training --strong-sequences 16 --seconds "$seconds"
run "training one rank" training --gpus 0 --seconds "$seconds"
run "flip training" training --gpus 0 --seconds 0 --model 512 --heads 8 --sequence 256 --inject-flip 0:100:20

model=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr -cs 'A-Za-z0-9\n' '-' | sed 's/-*$//')
mkdir -p bench/results
raw=bench/results/$(date +%F)-$model.json
python3 - "$lines" "$raw" <<'PY'
import json, re, subprocess, sys
# Results are public: parts are named by numbers, not by serial numbers.
text = open(sys.argv[1]).read()
for number, uuid in enumerate(dict.fromkeys(re.findall(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text))):
    text = text.replace(uuid, f"GPU-{number}")
rows = [json.loads(re.sub(r'"serial": ?"[^"]*"', '"serial":""', line)) for line in text.splitlines()]
smi = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,power.limit", "--format=csv,noheader"], capture_output=True, text=True)
json.dump({"gpus": smi.stdout.strip().splitlines(), "runs": rows}, open(sys.argv[2], "w"), indent=1)

def metrics(row):
    result = row["result"] or {}
    one = result["parts"][0]["result"] if result.get("parts") else result
    return {k: v["value"] for k, v in one.get("metrics", {}).items()}

flips = [r for r in rows if r["label"].startswith("flip")]
tests = [r for r in rows if not r["label"].startswith("flip")]
# 3: could not run here (fp8 on an A100, say). It is said, and neither passed nor failed.
summary = {"benchmark": "gpu", "passed": sum(r["exit"] == 0 for r in tests), "failed": [r["label"] for r in tests if r["exit"] not in (0, 3)],
           "not_run": [r["label"] for r in rows if r["exit"] == 3], "flips_planted": sum(r["exit"] != 3 for r in flips),
           "flips_seen": sum(r["exit"] == 1 and bool(r["result"]) and r["result"]["outcome"] == "corrupt" for r in flips),
           "metrics": {r["label"]: metrics(r) for r in tests if r["exit"] == 0}, "raw": sys.argv[2]}
print(json.dumps(summary))
bad = summary["failed"] or summary["flips_seen"] != summary["flips_planted"] or summary["passed"] == 0
sys.exit(1 if bad else 0)
PY
