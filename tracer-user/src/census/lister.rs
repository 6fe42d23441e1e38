//! What is installed in folders, asked of a thread that may hang with their file system. Whoever asks waits for a
//! deadline at most; a folder that did not answer is left alone for a while, and so are all while too many hang.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::Builder,
    time::{Duration, Instant},
};

use super::{
    apart::{Age, Answer},
    listing::Listing,
};

/// For so long an answer is good without looking again.
const FRESH: Duration = Duration::from_secs(60);
/// For so long a folder that did not answer is left alone.
const AFTER_SILENCE: Duration = Duration::from_secs(300);
/// Threads that hang at once, at most.
const MOST_HANGING: usize = 4;
/// Folders that are remembered.
const MOST_FOLDERS: usize = 512;

/// What a folder is asked by, so that tests can make it hang.
pub(super) type Ask = fn(&str, Option<Age>, bool) -> io::Result<Answer>;

/// What is remembered of a folder.
struct Known {
    /// `None` where it could not be read, or did not answer.
    listed: Option<(Age, Arc<Listing>)>,
    /// Until then nobody looks again.
    until: Instant,
}

/// Asks folders, and remembers.
pub struct Lister {
    deadline: Duration,
    with_files: bool,
    known: BTreeMap<String, Known>,
    worker: Option<Worker>,
    hanging: Arc<AtomicUsize>,
    ask: Ask,
}

/// A thread that asks one folder after the other.
struct Worker {
    wishes: Sender<(String, Option<Age>)>,
    answers: Receiver<io::Result<Answer>>,
}

impl Lister {
    /// One that waits `deadline` for a folder, which it has asked by `ask`, and reads lists of files where that is wanted.
    pub fn new(deadline: Duration, with_files: bool, ask: Ask) -> Self {
        Self {
            deadline,
            with_files,
            known: BTreeMap::new(),
            worker: None,
            hanging: Arc::default(),
            ask,
        }
    }

    /// What is installed in the folder at `site`; `None` where that is not the one with this inode, or nobody can tell.
    pub fn list(&mut self, site: &str, inode: Option<u64>) -> Option<Arc<Listing>> {
        let now = Instant::now();
        let known = self.known.get(site);
        if known.is_none_or(|known| known.until <= now) {
            let before = known.and_then(|known| known.listed.clone());
            let fresh = self.asked(site, before);
            if self.known.len() >= MOST_FOLDERS {
                self.known.retain(|_, known| known.until > now);
            }
            if self.known.len() < MOST_FOLDERS {
                self.known.insert(site.to_owned(), fresh);
            }
        }
        let (age, listing) = self.known.get(site)?.listed.as_ref()?;
        let is_it = inode.is_none_or(|inode| inode == age.0);
        is_it.then(|| listing.clone())
    }

    /// What the folder says now, where `before` is what it said.
    fn asked(&mut self, site: &str, before: Option<(Age, Arc<Listing>)>) -> Known {
        let until = |span| Instant::now() + span;
        let deadline = self.deadline;
        let Some(worker) = self.worker() else {
            return Known { listed: None, until: until(FRESH) };
        };
        let age = before.as_ref().map(|(age, _)| *age);
        let answer = match worker.wishes.send((site.to_owned(), age)) {
            Ok(()) => worker.answers.recv_timeout(deadline),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok(Ok(Answer::Unchanged)) => Known { listed: before, until: until(FRESH) },
            Ok(Ok(Answer::Listed(age, listing))) => {
                Known { listed: Some((age, Arc::new(listing))), until: until(FRESH) }
            }
            Ok(Err(_)) => Known { listed: None, until: until(FRESH) },
            Err(_) => {
                // Its thread counts itself out once it has its answer, which nobody waits for any more.
                self.worker = None;
                Known { listed: None, until: until(AFTER_SILENCE) }
            }
        }
    }

    /// The thread, a new one where the last one hangs; `None` while too many do.
    fn worker(&mut self) -> Option<&Worker> {
        if self.worker.is_none() {
            if self.hanging.load(Ordering::Relaxed) >= MOST_HANGING {
                return None;
            }
            let (wishes, to_do) = channel::<(String, Option<Age>)>();
            let (done, answers) = channel();
            let (ask, with_files, hanging) = (self.ask, self.with_files, self.hanging.clone());
            let work = move || {
                for (site, age) in to_do {
                    // As long as it asks it may hang.
                    hanging.fetch_add(1, Ordering::Relaxed);
                    let answer = ask(&site, age, with_files);
                    hanging.fetch_sub(1, Ordering::Relaxed);
                    if done.send(answer).is_err() {
                        return;
                    }
                }
            };
            Builder::new().name("jobtrace-list".into()).spawn(work).ok()?;
            self.worker = Some(Worker { wishes, answers });
        }
        self.worker.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread::sleep};

    use super::{
        super::{apart::ask, listing::read_age},
        *,
    };

    #[test]
    fn it_is_asked_once_and_again_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().to_str().unwrap();
        fs::create_dir(folder.path().join("six-1.16.0.dist-info")).unwrap();
        let mut lister = Lister::new(Duration::from_secs(60), false, ask);
        let first = lister.list(site, None).unwrap();
        assert_eq!(first.distribution("six").unwrap().version.as_deref(), Some("1.16.0"));
        assert!(Arc::ptr_eq(&first, &lister.list(site, None).unwrap()));
        let inode = read_age(folder.path()).unwrap().0;
        assert!(lister.list(site, Some(inode)).is_some());
        assert!(lister.list(site, Some(inode + 1)).is_none(), "another folder of that path");
        // As if a minute had passed.
        let make_old = |lister: &mut Lister| {
            lister.known.get_mut(site).unwrap().until = Instant::now();
        };
        make_old(&mut lister);
        assert!(Arc::ptr_eq(&first, &lister.list(site, None).unwrap()), "as it was");
        fs::create_dir(folder.path().join("attrs-23.1.0.dist-info")).unwrap();
        make_old(&mut lister);
        assert!(lister.list(site, None).unwrap().distribution("attr").is_some());
        assert!(lister.list("/nowhere", None).is_none());
    }

    #[test]
    fn what_hangs_is_left_alone_and_holds_up_nothing_else() {
        fn hangs(site: &str, before: Option<Age>, with_files: bool) -> io::Result<Answer> {
            if site.starts_with("/dead") {
                sleep(Duration::from_secs(3600));
            }
            ask(site, before, with_files)
        }
        let folder = tempfile::tempdir().unwrap();
        let alive = folder.path().to_str().unwrap();
        let mut lister = Lister::new(Duration::from_millis(50), false, hangs);
        let begin = Instant::now();
        for _ in 0..3 {
            assert!(lister.list("/dead/1", None).is_none());
        }
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert_eq!(lister.hanging.load(Ordering::Relaxed), 1, "asked once");
        lister.deadline = Duration::from_secs(60);
        assert!(lister.list(alive, None).is_some());
        lister.deadline = Duration::from_millis(50);
        for dead in 2..=9 {
            assert!(lister.list(&format!("/dead/{dead}"), None).is_none());
        }
        assert_eq!(lister.hanging.load(Ordering::Relaxed), MOST_HANGING);
        // Every thread hangs: nothing is asked any more.
        let begin = Instant::now();
        assert!(lister.list("/", None).is_none());
        assert!(begin.elapsed() < Duration::from_millis(50));
    }
}
