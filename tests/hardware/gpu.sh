#!/bin/sh
# Whether what jobtrace says of NVIDIA GPUs is so, on a machine that has one: takes ten minutes, builds and
# installs nothing, needs the driver alone. FOLDER has what `cargo build --release -p jobtrace -p jobtrace-tests
# --bin jobtrace --bin gpu_check --bin cuda_work` made, on a machine with a glibc no newer than this one's.
# GPU 0 must be idle. Prints versions, then a line for each check; the exit status is 1 if one is wrong.
set -u
folder=${1:?usage: gpu.sh FOLDER [LIBRARY]}
library=${2:-}
work=${GPU_CHECK_WORK:-$folder/cuda_work}

"$folder/jobtrace" --version
uname -sr
if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,vbios_version,mig.mode.current --format=csv,noheader
fi
"$folder/jobtrace" doctor | grep -A 99 'NVIDIA GPUs' || echo "jobtrace doctor finds no NVIDIA GPU"

wrong=0
"$folder/gpu_check" "$work" ${library:+"$library"} || wrong=1

# The clients of an MPS server are in a list of their own.
if command -v nvidia-cuda-mps-control >/dev/null; then
    CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d)
    CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
    export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    nvidia-cuda-mps-control -d
    echo "through MPS:"
    "$folder/gpu_check" "$work" ${library:+"$library"} || wrong=1
    echo quit | nvidia-cuda-mps-control
    rm -rf "$CUDA_MPS_PIPE_DIRECTORY"
else
    echo "left out: MPS (no nvidia-cuda-mps-control)"
fi

# The probes too, where they may be loaded: a job's GPU beside its reads.
if "$folder/jobtrace" run --quiet -- true 2>/dev/null; then
    "$folder/jobtrace" run -- "$work" spin 10 970 50 256 || wrong=1
else
    echo "left out: jobtrace run (its probes cannot be loaded here; jobtrace doctor says why)"
fi
exit $wrong
