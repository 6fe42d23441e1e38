//! slurm.conf and cgroup.conf of the private Slurm.

use std::path::Path;

use anyhow::{Context, Result};
use jobtrace::cgroup::hierarchies::Hierarchies;

use super::Mode;

/// What differs between two of them.
pub(super) struct Settings<'a> {
    pub mode: Mode,
    pub folder: &'a Path,
    pub node: &'a str,
    /// The host's own name: slurmctld refuses to serve another.
    pub host: &'a str,
    /// Of slurmctld and slurmd.
    pub ports: [u16; 2],
    /// More lines of slurm.conf.
    pub more: &'a str,
}

impl Settings<'_> {
    /// slurm.conf. More CPUs than there are, so that several jobs run at once on a small machine;
    /// `config_overrides` because slurmd finds fewer.
    pub fn slurm(&self) -> String {
        let Self { mode, node, host, ports: [controller, daemon], more, .. } = self;
        let folder = self.folder.display();
        // Numbers that no other test's jobs on this machine have.
        let first_job = std::process::id() % 60_000 * 1000 + 1;
        let gather = match mode {
            Mode::V1 => "jobacct_gather/cgroup",
            Mode::V2 => "jobacct_gather/linux",
        };
        format!(
            "ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/sock
SlurmctldPort={controller}
SlurmdPort={daemon}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
PrologFlags=contain
JobAcctGatherType={gather}
JobAcctGatherFrequency=task=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=256
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
KillWait=1
MaxArraySize=1001
FirstJobId={first_job}
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=4096 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
{more}
"
        )
    }

    /// cgroup.conf. On v2 `ConstrainDevices` is what has the directories `task_N` made.
    pub fn cgroup(&self, found: &Hierarchies) -> Result<String> {
        Ok(match self.mode {
            Mode::V1 => {
                let memory = found.v1("memory").context("no v1 hierarchy of memory")?;
                let mounts = memory.mount.parent().context("memory is mounted at the root")?;
                format!(
                    "CgroupPlugin=cgroup/v1\nCgroupMountpoint={}\nCgroupAutomount=no\n\
                     ConstrainCores=yes\nConstrainRAMSpace=yes\n",
                    mounts.display()
                )
            }
            Mode::V2 => {
                let v2 = found.v2.as_ref().context("cgroup v2 is not mounted")?;
                format!(
                    "CgroupPlugin=cgroup/v2\nCgroupMountpoint={}\nIgnoreSystemd=yes\n\
                     ConstrainDevices=yes\n",
                    v2.mount.display()
                )
            }
        })
    }
}
