# For the end of a PBS, Torque or LSF job's script, or for a site's job template: ten lines of the report at the end of
# the job's own log, also where a command fails or the job is asked to end.
#
# PBS runs its epilogue as root, when the job's output may have been copied already: so the job's own shell does it.
trap '/usr/bin/jobtrace report --short --no-sched "${PBS_JOBID:-$LSB_JOBID}" >&2' EXIT
