#!/bin/sh
# Whether what jobtrace says of NVIDIA GPUs is so, on a machine that has one: takes ten minutes, builds and
# installs nothing, needs the driver alone. FOLDER has what `cargo build --release -p jobtrace -p jobtrace-tests
# --bin jobtrace --bin gpu_check --bin cuda_work` made, on a machine with a glibc no newer than this one's.
# GPU 0 must be idle. Prints versions, then a line for each check; the exit status is 1 if one is wrong. As root
# it checks more: lines that begin with "left out" say what was not checked, and why.
set -u
folder=${1:?usage: gpu.sh FOLDER}

"$folder/jobtrace" --version
uname -sr
if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,vbios_version,mig.mode.current --format=csv,noheader
fi
"$folder/jobtrace" doctor | grep -A 99 'NVIDIA GPUs' || echo "jobtrace doctor finds no NVIDIA GPU"
exec "$folder/gpu_check" "$folder"
