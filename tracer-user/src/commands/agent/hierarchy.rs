//! Which hierarchy tells the node's jobs apart, what is in it now, and where a job's files are.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{DirEntryExt, MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    base::layout::Layout,
    cgroup::{
        held::read_file,
        hierarchies::{Hierarchies, Hierarchy},
        job::is_used,
        place::{Place, Places},
    },
    probes::Cgroup,
};

/// v1 controllers that can tell jobs apart, best first: schedulers put every job into the freezer, and
/// memory is where most of the others are too.
const CONTROLLERS: [&str; 6] = ["freezer", "memory", "cpuset", "pids", "cpuacct", "devices"];

/// The hierarchies as the agent uses them.
#[derive(Clone, Debug)]
pub struct View {
    hierarchies: Hierarchies,
    layout: Layout,
    /// Leading components that the kernel's paths have and this cgroup namespace does not show.
    hidden: Option<usize>,
}

impl View {
    /// Chooses by `wanted`: `auto`, `v2` or the name of a v1 controller.
    ///
    /// # Errors
    /// When this node has no such hierarchy.
    pub fn choose(hierarchies: Hierarchies, wanted: &str) -> Result<Self> {
        let v1 = |name: &str| Some((hierarchies.v1(name)?, Some(name.to_owned())));
        let v2 = || Some((hierarchies.v2.as_ref()?, None));
        // v2 beside v1 has no controllers of its own: schedulers use v1 there.
        let unified = hierarchies.v2.as_ref().is_some_and(|v2| v2.has("memory") || v2.has("cpu"));
        let tasks = match wanted {
            "auto" if unified => v2(),
            "auto" => CONTROLLERS.iter().find_map(|name| v1(name)).or_else(v2),
            "v2" => v2(),
            name => v1(name),
        };
        let Some((tasks, controller)) = tasks else {
            bail!("this node has no cgroup hierarchy {wanted}: set `hierarchy` to auto");
        };
        let block = hierarchies.v1("blkio").or(hierarchies.v2.as_ref());
        let layout = Layout {
            tasks_hierarchy: tasks.number,
            tasks_controller: controller,
            block_hierarchy: block.map(|block| block.number),
        };
        Ok(Self { hierarchies, layout, hidden: None })
    }

    /// What the probes are to know.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What the chosen hierarchy is called, for messages.
    pub fn name(&self) -> String {
        match &self.layout.tasks_controller {
            None => "v2".into(),
            Some(controller) => format!("v1 {controller}"),
        }
    }

    /// Whether what `jobtrace run` starts has cgroups of its own in the chosen hierarchy: where not, its tasks count
    /// elsewhere, and so must what else of it is charged to cgroups.
    pub fn sees_runs(&self) -> bool {
        let in_v2 = self.hierarchies.v2.is_some();
        self.tables().any(|(table, hierarchy)| table == 0 && is_used(hierarchy, in_v2))
    }

    fn tables(&self) -> impl Iterator<Item = (u32, &Hierarchy)> {
        let all = || self.hierarchies.v2.iter().chain(&self.hierarchies.v1);
        let tasks = all().find(|found| found.number == self.layout.tasks_hierarchy);
        let block = (self.layout.block_table() == 1)
            .then(|| all().find(|found| Some(found.number) == self.layout.block_hierarchy))
            .flatten();
        tasks.map(|found| (0, found)).into_iter().chain(block.map(|found| (1, found)))
    }

    /// Every cgroup of the tasks' and of block I/O's hierarchy, with its path below the root, parents
    /// before children. What goes away meanwhile is left out.
    ///
    /// # Errors
    /// When a hierarchy cannot be read at all.
    pub fn walk(&self) -> Result<Vec<(Cgroup, PathBuf)>> {
        let mut found = Vec::new();
        for (table, hierarchy) in self.tables() {
            let mount = &hierarchy.mount;
            let mut pending = vec![PathBuf::from("/")];
            fs::read_dir(mount).with_context(|| format!("cannot read {}", mount.display()))?;
            while let Some(path) = pending.pop() {
                for entry in fs::read_dir(below(mount, &path)).into_iter().flatten().flatten() {
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        let path = path.join(entry.file_name());
                        found.push((Cgroup { table, id: entry.ino() }, path.clone()));
                        pending.push(path);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The path of `cgroup`, searched for; `None` where it is gone.
    pub fn find(&self, cgroup: Cgroup) -> Option<PathBuf> {
        self.walk().ok()?.into_iter().find_map(|(found, path)| (found == cgroup).then_some(path))
    }

    /// The kernel's `path` of `cgroup` as this process sees it: without what its cgroup namespace
    /// hides.
    pub fn seen(&mut self, cgroup: Cgroup, path: &Path) -> PathBuf {
        // Learnt from the first cgroup that is still there.
        if self.hidden.is_none() {
            self.hidden = self.find_hidden(cgroup, path);
        }
        self.shown(path)
    }

    /// The same of a cgroup that is gone: as those that were seen before.
    pub fn shown(&self, path: &Path) -> PathBuf {
        let parts = path.iter().skip(1 + self.hidden.unwrap_or(0));
        Path::new("/").join(parts.collect::<PathBuf>())
    }

    /// How many leading components must go for `path` to lead to `cgroup`.
    fn find_hidden(&self, cgroup: Cgroup, path: &Path) -> Option<usize> {
        let (_, hierarchy) = self.tables().find(|(table, _)| *table == cgroup.table)?;
        (0..path.iter().count()).find(|&hidden| {
            let parts: PathBuf = path.iter().skip(1 + hidden).collect();
            fs::metadata(hierarchy.mount.join(parts)).is_ok_and(|found| found.ino() == cgroup.id)
        })
    }

    /// The id of the cgroup `path` in the hierarchy that tells jobs apart; `None` where it is gone.
    pub fn id(&self, path: &Path) -> Option<u64> {
        let (_, tasks) = self.tables().find(|(table, _)| *table == 0)?;
        Some(fs::metadata(below(&tasks.mount, path)).ok()?.ino())
    }

    /// The owner of the directory `path` in the hierarchy of `table`, who can make what is in it. Where that is
    /// gone, `made_by`, who made something there; where nobody knows, the owner of the nearest one above that
    /// is still there.
    pub fn maker(&self, table: u32, path: &Path, made_by: Option<u32>) -> u32 {
        let Some((_, hierarchy)) = self.tables().find(|(number, _)| *number == table) else {
            return 0;
        };
        let owner = |path: &Path| Some(fs::metadata(below(&hierarchy.mount, path)).ok()?.uid());
        owner(path).or(made_by).or_else(|| path.ancestors().find_map(owner)).unwrap_or(0)
    }

    /// The directories of the job whose topmost one is `root`, in every hierarchy that has one.
    pub fn places(&self, root: &Path) -> Places {
        self.some_places(root, |_| true)
    }

    /// For those of many jobs, one after another: where jobs lie side by side, a hierarchy that lacks the directory above
    /// them is asked once.
    pub fn places_of_many(&self) -> impl FnMut(&Path) -> Places {
        let (mut above, mut having) = (None, Vec::new());
        move |root| {
            let parent = root.parent().unwrap_or(root);
            if above.as_deref() != Some(parent) {
                let has = |hierarchy: &&Hierarchy| below(&hierarchy.mount, parent).is_dir();
                having = self.all().filter(has).map(|hierarchy| hierarchy.number).collect();
                above = Some(parent.to_owned());
            }
            self.some_places(root, |hierarchy| having.contains(&hierarchy.number))
        }
    }

    fn all(&self) -> impl Iterator<Item = &Hierarchy> {
        self.hierarchies.v2.iter().chain(&self.hierarchies.v1)
    }

    fn some_places(&self, root: &Path, wanted: impl Fn(&Hierarchy) -> bool) -> Places {
        let place = |hierarchy: &Hierarchy| {
            let directory = below(&hierarchy.mount, root);
            directory.is_dir().then(|| Place {
                number: hierarchy.number,
                controllers: hierarchy.controllers.clone(),
                mount: hierarchy.mount.clone(),
                directory: directory.into(),
                own: true,
            })
        };
        Places(self.all().filter(|hierarchy| wanted(hierarchy)).filter_map(place).collect())
    }

    /// The devices that the v1 controller lets the job use, as it lists them; `None` without that controller:
    /// what a program of v2 allows cannot be read.
    pub fn read_devices(&self, root: &Path) -> Option<String> {
        let devices = self.hierarchies.v1("devices")?;
        fs::read_to_string(below(&devices.mount, root).join("devices.list")).ok()
    }

    /// Processes in the job's directories.
    pub fn pids(&self, root: &Path) -> BTreeSet<u32> {
        self.some_pids(root, usize::MAX)
    }

    /// The same, of `most` directories at most, until there are `most` of them: a job may have any number of both.
    pub fn some_pids(&self, root: &Path, most: usize) -> BTreeSet<u32> {
        let (mut pids, mut looked_at) = (BTreeSet::new(), 0);
        let tasks = self.tables().find(|(table, _)| *table == 0);
        let mut pending: Vec<_> =
            tasks.map(|(_, tasks)| below(&tasks.mount, root)).into_iter().collect();
        while let Some(directory) = pending.pop().filter(|_| pids.len() < most && looked_at < most)
        {
            looked_at += 1;
            let text = read_file(&directory, "cgroup.procs").unwrap_or_default();
            let found = text.lines().filter_map(|line| line.parse::<u32>().ok());
            pids.extend(found.take(most - pids.len()));
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            pending.extend(entries.filter(is_dir).map(|entry| entry.path()));
        }
        pids
    }
}

/// The directory of the cgroup `path` below `mount`.
fn below(mount: &Path, path: &Path) -> PathBuf {
    mount.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(number: u32, controllers: &[&str], mount: &Path) -> Hierarchy {
        let controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
        Hierarchy { number, controllers, mount: mount.into(), own: mount.into() }
    }

    fn hybrid(mount: &Path) -> Hierarchies {
        let v1 = [(3, &["memory"][..]), (4, &["blkio"]), (6, &["freezer"])];
        Hierarchies {
            v2: Some(hierarchy(0, &[], mount)),
            v1: v1.iter().map(|(number, names)| hierarchy(*number, names, mount)).collect(),
        }
    }

    #[test]
    fn the_hierarchy_that_schedulers_use_is_chosen() {
        let mount = Path::new("/none");
        let chosen = |hierarchies: Hierarchies, wanted: &str| {
            let view = View::choose(hierarchies, wanted)?;
            anyhow::Ok((view.layout.tasks_hierarchy, view.layout.block_hierarchy, view.name()))
        };
        assert_eq!(chosen(hybrid(mount), "auto").unwrap(), (6, Some(4), "v1 freezer".into()));
        assert_eq!(chosen(hybrid(mount), "v2").unwrap(), (0, Some(4), "v2".into()));
        assert_eq!(chosen(hybrid(mount), "memory").unwrap(), (3, Some(4), "v1 memory".into()));
        assert!(chosen(hybrid(mount), "cpuset").is_err());
        let pure =
            Hierarchies { v2: Some(hierarchy(0, &["cpu", "io", "memory"], mount)), v1: Vec::new() };
        assert_eq!(chosen(pure, "auto").unwrap(), (0, Some(0), "v2".into()));
    }

    #[test]
    fn runs_are_seen_where_their_tasks_are() {
        let mount = Path::new("/none");
        let sees = |hierarchies, wanted| View::choose(hierarchies, wanted).unwrap().sees_runs();
        assert!(!sees(hybrid(mount), "freezer") && sees(hybrid(mount), "memory"));
        assert!(sees(hybrid(mount), "v2"));
        assert!(sees(Hierarchies { v2: None, ..hybrid(mount) }, "freezer"));
    }

    #[test]
    fn the_help_names_the_order_of_the_choice() {
        let key = crate::commands::agent::config::KEYS.iter().find(|key| key.path == "hierarchy");
        let help = key.unwrap().help;
        assert!(help.contains(&CONTROLLERS.join(", ")), "{help}");
    }

    #[test]
    fn a_tree_is_walked_and_a_namespace_is_seen_through() {
        let root = tempfile::tempdir().unwrap();
        let job = root.path().join("slurm/job_1/step_0");
        fs::create_dir_all(&job).unwrap();
        let mut view = View::choose(hybrid(root.path()), "freezer").unwrap();
        let found = view.walk().unwrap();
        let paths: Vec<_> = found.iter().filter(|(cgroup, _)| cgroup.table == 0).collect();
        assert_eq!(paths[2].1, Path::new("/slurm/job_1/step_0"));
        assert_eq!(paths.len(), 3);
        let cgroup = paths[2].0;
        assert_eq!(cgroup.id, fs::metadata(&job).unwrap().ino());
        assert_eq!(view.id(Path::new("/slurm/job_1/step_0")), Some(cgroup.id));
        assert_eq!(view.id(Path::new("/slurm/job_1/step_1")), None);
        let seen = view.seen(cgroup, Path::new("/machine/c1/slurm/job_1/step_0"));
        assert_eq!(seen, Path::new("/slurm/job_1/step_0"));
        assert_eq!(view.seen(cgroup, Path::new("/machine/c1/x")), Path::new("/x"));
        assert_eq!(view.places(Path::new("/slurm/job_1")).0.len(), 4);
        assert_eq!(view.places(Path::new("/slurm/job_2")).0.len(), 0);
    }

    #[test]
    fn of_many_jobs_each_is_found_where_it_has_directories() {
        let mounts = [(), ()].map(|()| tempfile::tempdir().unwrap());
        let make = |of: usize, path| fs::create_dir_all(mounts[of].path().join(path)).unwrap();
        [(0, "slurm/job_1"), (0, "slurm/job_2"), (0, "lsf/job_3"), (1, "slurm/job_2")]
            .into_iter()
            .for_each(|(of, path)| make(of, path));
        let v1 = [(6, "freezer", &mounts[0]), (3, "memory", &mounts[1])];
        let v1 = v1.map(|(number, name, mount)| hierarchy(number, &[name], mount.path())).to_vec();
        let view = View::choose(Hierarchies { v2: None, v1 }, "freezer").unwrap();
        let numbers =
            |places: Places| places.0.iter().map(|place| place.number).collect::<Vec<_>>();
        let mut of_many = view.places_of_many();
        let mut found = |path: &str| numbers(of_many(Path::new(path)));
        let jobs = ["/slurm/job_1", "/slurm/job_2", "/lsf/job_3"];
        assert_eq!(jobs.map(&mut found), [vec![6], vec![6, 3], vec![6]]);
        assert_eq!(
            ["/slurm/job_2/step", "/slurm", "/none/job"].map(&mut found),
            [vec![], vec![6, 3], vec![]]
        );
        make(1, "lsf/job_3");
        assert_eq!(
            ["/lsf/job_3", "/slurm/job_1", "/lsf/job_3"].map(&mut found),
            [vec![6, 3], vec![6], vec![6, 3]]
        );
        make(1, "slurm/job_1");
        assert_eq!(found("/slurm/job_1"), [6, 3]);
    }

    #[test]
    fn of_the_processes_of_a_job_some_are_found_without_a_look_at_all() {
        let root = tempfile::tempdir().unwrap();
        for step in 0..9 {
            let step = root.path().join(format!("job_1/step_{step}"));
            fs::create_dir_all(&step).unwrap();
            fs::write(step.join("cgroup.procs"), "7\n8\n9\n").unwrap();
        }
        let first = root.path().join("job_1/cgroup.procs");
        fs::write(&first, "1\n2\n3\n").unwrap();
        let view = View::choose(hybrid(root.path()), "freezer").unwrap();
        let some = |most| Vec::from_iter(view.some_pids(Path::new("/job_1"), most));
        assert_eq!(some(2), [1, 2]);
        assert_eq!(some(4), [1, 2, 3, 7]);
        assert_eq!(view.pids(Path::new("/job_1")).len(), 6);
        fs::remove_file(first).unwrap();
        assert!(some(1).is_empty(), "one directory was looked at");
    }
}
