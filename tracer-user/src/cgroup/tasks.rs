//! How many tasks are in a job's cgroups.

use super::{
    formats::parse_number,
    place::{Place, Places},
    seldom::Listing,
    tree::children,
};
use crate::base::{directory::Directory, kept::KeptFile};

/// The tasks of a job: as the kernel counts them or, where it does not, as it lists them.
pub(super) struct Tasks {
    counts: Vec<KeptFile>,
    listed: Option<Listed>,
    /// The kernel did not count them when they were asked for last: v2 may lack the controller.
    are_listed: bool,
    /// How many there were then.
    known: Option<u64>,
}

impl Tasks {
    /// Those of the job at `places`.
    pub fn of(places: &Places) -> Self {
        let has_pids =
            |number, controllers: &[String]| number == 0 || controllers.iter().any(|c| c == "pids");
        let counted = places.own().filter(|place| has_pids(place.number, &place.controllers));
        let file = |place: &Place| KeptFile::new(place.directory.clone(), "pids.current");
        let counts = counted.map(file).collect();
        let listed = places.own().next().map(|place| {
            let name = if place.number == 0 { "cgroup.threads" } else { "tasks" };
            Listed::new(place.directory.clone(), name)
        });
        Self { counts, listed, are_listed: false, known: None }
    }

    /// Closes its files until it is asked again.
    pub fn close(&mut self) {
        self.counts.iter_mut().for_each(KeptFile::close);
        self.listed.iter_mut().for_each(Listed::close);
    }

    /// Whether the kernel only lists them, as far as is known.
    pub fn are_listed(&self) -> bool {
        self.are_listed
    }

    /// How many there were when they were asked for last.
    pub fn known(&self) -> Option<u64> {
        self.known
    }

    /// How many there are now; `None` where the job has no cgroup of its own, or the kernel only lists them and `listing`
    /// does not know.
    pub fn count(&mut self, listing: Listing) -> Option<u64> {
        let counted = self.counts.iter_mut().find_map(|file| file.read(parse_number));
        self.are_listed = counted.is_none();
        self.known = counted.or_else(|| match listing {
            Listing::Same if self.known.is_some() => self.known,
            Listing::Now | Listing::Same => self.listed.as_mut()?.count(),
            Listing::Unknown => None,
        });
        self.known
    }
}

/// A cgroup that lists its tasks in the file `name`, with all below it.
struct Listed {
    directory: Directory,
    name: &'static str,
    /// Links of the directory when it was listed.
    links: u64,
    below: Vec<Self>,
}

impl Listed {
    fn new(directory: impl Into<Directory>, name: &'static str) -> Self {
        Self { directory: directory.into(), name, links: 0, below: Vec::new() }
    }

    fn close(&mut self) {
        self.directory.close();
        self.below.iter_mut().for_each(Self::close);
    }

    /// Tasks in it and below; one below that goes away meanwhile counts nothing.
    fn count(&mut self) -> Option<u64> {
        let (own, links) = self.directory.count(self.name)?;
        if links == self.links {
            let below = self.below.iter_mut().map(Self::count).sum::<Option<u64>>();
            // One may have gone and another come.
            if let Some(below) = below {
                return Some(own + below);
            }
        }
        self.links = links;
        let found = children(&self.directory).into_iter();
        self.below = found.map(|directory| Self::new(directory, self.name)).collect();
        Some(own + self.below.iter_mut().filter_map(Self::count).sum::<u64>())
    }
}
