//! GPUs and jobs brought together: a look at the tasks of those that have GPUs after each reading, who was
//! given which, and each interval's part of the job that it is.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Result;

use super::{jobs::Jobs, slots::Slots};
use crate::{
    base::clock::monotonic_ns,
    commands::agent::{gpus::Gpus, log::Log},
    gpu::{Claim, Claims},
    model::{
        group::{Group, merge_all},
        job::Job,
        lease::Lease,
        snapshot::Interval,
        tables::SELF,
    },
};

/// Longest file of a site that is read; it names one job.
const LONGEST_FILE: usize = 4096;
/// Major number of NVIDIA's device files, and the first minor number that is no GPU's.
const NVIDIA: &str = "195";
const NO_GPU: u32 = 254;

impl Gpus {
    /// Looks at what the tasks of jobs with GPUs did up to now: their slots alone.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub(super) fn look_at_tasks(&mut self, jobs: &Jobs, slots: &mut Slots) -> Result<()> {
        if self.claims_wait {
            self.claim_for(jobs);
        }
        let watched = self.watched();
        if watched.is_empty() {
            return Ok(());
        }
        let tracker = &jobs.tracker;
        let lease_of = |name: &Job| {
            let lease = tracker.job(tracker.named(name))?.lease?;
            Some((name.clone(), lease))
        };
        let leases: BTreeMap<Job, Lease> = watched.iter().filter_map(lease_of).collect();
        let wanted: Vec<Lease> = leases.values().copied().collect();
        let found = slots.probes.look(&wanted)?;
        let now_ns = monotonic_ns();
        for name in watched {
            let groups =
                found.as_ref().zip(leases.get(&name)).and_then(|(of, lease)| of.get(lease));
            self.look(&name, now_ns, groups.map(Vec::as_slice));
        }
        Ok(())
    }

    /// Adds to `interval` what each job did to each GPU: to the slot that is charged for it, or to the
    /// rest of the node's where it has none.
    pub(super) fn add_to(&mut self, interval: &mut Interval, jobs: &Jobs, log: &Log) {
        self.claim_for(jobs);
        let tracker = &jobs.tracker;
        let ended: Vec<Job> = tracker.ended().into_iter().map(|(_, job)| job).collect();
        for name in self.watched() {
            if ended.contains(tracker.named(&name)) {
                self.settle(&name);
            }
        }
        for (name, groups) in self.interval(monotonic_ns()) {
            let tracked = tracker.job(tracker.named(&name));
            let is_gone = tracked.is_none() && name != Job::system();
            if is_gone && groups.iter().all(Group::is_idle) {
                self.forget(&name);
                continue;
            }
            let lease = tracked.and_then(|tracked| tracked.lease).unwrap_or(0);
            merge_all(interval.slots.entry(lease).or_default(), &groups);
        }
        if let Some(own) = interval.own.iter_mut().find(|own| own.is(&SELF)) {
            self.tell(own, log);
        }
    }

    /// Tells the sampler who was given which GPU. Of what tells it the first counts: the site's file, the
    /// device cgroup (v1), the scheduler's environment. Steps have what their job has. Before the first reading it is not
    /// looked up: most nodes without GPUs never have one.
    pub(super) fn claim_for(&mut self, jobs: &Jobs) {
        self.claims_wait = !self.has_any();
        if self.claims_wait {
            return;
        }
        let site = self.held_dir().map(|dir| read_site(dir)).unwrap_or_default();
        let mut claims = BTreeMap::new();
        let living = jobs.tracker.jobs().filter(|(_, job)| job.ended_ns.is_none());
        for (job, tracked) in living.filter(|(job, _)| job.step.is_empty()) {
            let of_site = site.get(&job.job);
            let of_cgroup = || {
                let list = jobs.view.read_devices(&tracked.root)?;
                Some(devices(&list)).filter(|claims| !claims.of.is_empty())
            };
            let of_environment = || jobs.details.get(job)?.claims().cloned();
            let found = of_site.cloned().or_else(of_cgroup).or_else(of_environment);
            // Under the name that the sampler gives its processes.
            let path = jobs.naming.resolver.path(&tracked.root.to_string_lossy());
            if let Some(found) = found.filter(|_| path.is_job()) {
                claims.insert(jobs.naming.name(&path), found);
            }
        }
        self.claim(claims);
    }
}

/// The GPUs of each job by the site's files: a file is called by a GPU's UUID or number, its first word is
/// the job.
fn read_site(dir: &Path) -> BTreeMap<String, Claims> {
    let mut jobs = BTreeMap::<String, Claims>::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let of = Claims::parse(&name.to_string_lossy(), Claim::Index);
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file
            || of.len() != 1
            || entry.metadata().map_or(0, |of| of.len()) > LONGEST_FILE as u64
        {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if let Some(job) = text.split_whitespace().next() {
            jobs.entry(job.to_owned()).or_default().of.extend(of);
        }
    }
    jobs
}

/// The GPUs in a devices.list; none where it allows all.
fn devices(list: &str) -> Claims {
    let minor = |line: &str| {
        let mut words = line.split_whitespace();
        let device = (words.next()? == "c").then(|| words.next())??;
        let (major, minor) = device.split_once(':')?;
        (major == NVIDIA).then(|| minor.parse::<u32>().ok().filter(|minor| *minor < NO_GPU))?
    };
    Claims { of: list.lines().filter_map(minor).map(Claim::Minor).collect(), is_relative: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_cgroup_lists_minor_numbers() {
        let list =
            "c 1:3 rwm\nc 195:2 rwm\nc 195:255 rwm\nc 195:254 rw\nc 195:0 rwm\nb 195:7 rwm\n";
        let minors = [Claim::Minor(0), Claim::Minor(2)].into();
        assert_eq!(devices(list), Claims { of: minors, is_relative: false });
        for all in ["a *:* rwm\n", "c 195:* rwm\n", "", "c\nc 195\nc 195:x rwm\n"] {
            assert_eq!(devices(all), Claims::default(), "{all:?}");
        }
    }

    #[test]
    fn a_sites_file_names_the_job_of_a_gpu() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("GPU-8932f937-d7", "4711 1000\n");
        write("1", "4711\n");
        write("GPU-aaaaaaaa-aa", "4712");
        write("README", "4713");
        write("GPU-bbbbbbbb-bb", "");
        write("GPU-cccccccc-cc", &"9".repeat(LONGEST_FILE + 1));
        fs::create_dir(dir.path().join("GPU-dddddddd-dd")).unwrap();
        let found = read_site(dir.path());
        let of = |job: &str| found.get(job).map(|claims| claims.of.clone().into_iter().collect());
        let uuid = Claim::Uuid("GPU-8932f937-d7".into());
        assert_eq!(of("4711"), Some(vec![uuid, Claim::Index(1)]));
        assert_eq!(of("4712"), Some(vec![Claim::Uuid("GPU-aaaaaaaa-aa".into())]));
        assert_eq!(found.len(), 2);
        assert!(read_site(Path::new("/no/such/folder")).is_empty());
    }
}
