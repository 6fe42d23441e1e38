#!/bin/sh
# Whether what jobtrace says of NVIDIA GPUs is so, on a machine that has one: takes ten minutes, builds and
# installs nothing, needs the driver alone. FOLDER has what `cargo build --release -p jobtrace -p jobtrace-tests
# --bin jobtrace --bin gpu_check --bin cuda_work` made, on a machine with a glibc no newer than this one's.
# GPU 0 must be idle, not divided (MIG) and in the default compute mode. Prints versions, then a line for each
# check. The exit status is 0 if all is well, 1 if something is wrong, 2 if nothing is and something could not be
# checked: lines that begin with "left out" say what, and why; 64 if it is used wrongly. As root it checks more.
# gpu.sh FOLDER PART... checks parts alone; a name that there is not prints them all.
set -u
folder=${1:-}
for program in jobtrace gpu_check cuda_work; do
    if [ ! -x "$folder/$program" ]; then
        echo "usage: gpu.sh FOLDER, with jobtrace, gpu_check and cuda_work in it; there is no $folder/$program" >&2
        exit 64
    fi
done

"$folder/jobtrace" --version
uname -sr
if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,vbios_version,mig.mode.current --format=csv,noheader
fi
"$folder/jobtrace" doctor | grep -A 99 'NVIDIA GPUs' || echo "jobtrace doctor finds no NVIDIA GPU"
exec "$folder/gpu_check" "$@"
