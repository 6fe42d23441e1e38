//! The one place for counting file operations: who has it, and how long it rests between two.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{base::values::Time, commands::agent::query::Caller};

/// Loading costs all others CPU time, so there is a rest after each: this at least, and as a multiple of loading.
const SHORTEST_REST: Duration = Duration::from_secs(10);
const RESTS_BY_LOADING: u32 = 20;

/// The one place there is.
#[derive(Clone, Default)]
pub(super) struct Place(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    holder: Option<Holder>,
    rests_until: Option<Instant>,
}

struct Holder {
    caller: Caller,
    /// At most.
    until: Instant,
    is_wanted: Arc<AtomicBool>,
}

/// Held by whoever has it.
pub struct Turn {
    place: Place,
    is_wanted: Arc<AtomicBool>,
    rest: Duration,
}

/// Why it cannot be had.
#[derive(Debug)]
pub(super) enum Refused {
    /// Another user had it, who was told to leave it to root.
    Soon,
    /// In words, with when to try again.
    Told(String),
}

impl Place {
    /// Takes it for `caller`, for `most` from `now` on.
    ///
    /// # Errors
    /// When somebody has it, or it rests: root alone need not wait for either, but for the other one's end.
    pub fn take(&self, caller: Caller, now: Instant, most: Duration) -> Result<Turn, Refused> {
        let mut state = self.state();
        let in_whole_s = |until: Instant| {
            let left_ms = until.saturating_duration_since(now).as_millis() as u64;
            Time::seconds(left_ms.div_ceil(1000).max(1))
        };
        if let Some(holder) = &state.holder {
            if caller.uid == 0 && holder.caller.uid != 0 {
                holder.is_wanted.store(true, Ordering::Release);
                return Err(Refused::Soon);
            }
            return Err(Refused::Told(format!(
                "the agent counts the file operations of one job at a time, and does so for {}, for {} at most: try \
                 again then",
                holder.caller.who(),
                in_whole_s(holder.until)
            )));
        }
        let rest = state.rests_until.filter(|until| caller.uid != 0 && *until > now);
        if let Some(until) = rest {
            return Err(Refused::Told(format!(
                "the agent rests between two countings of file operations: try again in {}",
                in_whole_s(until)
            )));
        }
        let is_wanted = Arc::new(AtomicBool::new(false));
        let holder = Holder { caller, until: now + most, is_wanted: Arc::clone(&is_wanted) };
        state.holder = Some(holder);
        Ok(Turn { place: self.clone(), is_wanted, rest: SHORTEST_REST })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Loading took so long.
    pub fn set_loading(&mut self, took: Duration) {
        self.rest = SHORTEST_REST.max(took * RESTS_BY_LOADING);
    }

    /// Whether root waits for it.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let rests_until = Some(Instant::now() + self.rest);
        *self.place.state() = State { holder: None, rests_until };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(60);

    fn user(uid: u32) -> Caller {
        Caller { uid, sees_all: uid == 0 }
    }

    fn refused(place: &Place, uid: u32, at: Instant) -> String {
        match place.take(user(uid), at, MOST) {
            Err(Refused::Told(why)) => why,
            Err(Refused::Soon) => "soon".into(),
            Ok(_) => "granted".into(),
        }
    }

    #[test]
    fn one_has_it_at_a_time_and_the_next_is_told_who() {
        let (place, now) = (Place::default(), Instant::now());
        let turn = place.take(user(0), now, MOST).unwrap();
        for uid in [0, 7] {
            let told = refused(&place, uid, now);
            assert!(told.contains("for root, for 1m at most: try again then"), "{told}");
        }
        assert!(!turn.is_wanted());
    }

    #[test]
    fn root_takes_it_from_others() {
        let (place, now) = (Place::default(), Instant::now());
        let turn = place.take(user(7), now, MOST).unwrap();
        assert!(refused(&place, 7, now).contains("for user 7, for 1m at most"));
        assert!(!turn.is_wanted());
        assert_eq!(refused(&place, 0, now), "soon");
        assert!(turn.is_wanted());
        drop(turn);
        assert_eq!(refused(&place, 0, Instant::now()), "granted");
    }

    #[test]
    fn it_rests_after_each_for_all_but_root() {
        let (place, now) = (Place::default(), Instant::now());
        let mut turn = place.take(user(7), now, MOST).unwrap();
        turn.set_loading(Duration::from_secs(2));
        drop(turn);
        let rests_until = place.state().rests_until.unwrap();
        assert!(rests_until >= now + Duration::from_secs(40));
        let told = refused(&place, 8, rests_until - Duration::from_millis(7_500));
        assert!(told.ends_with("try again in 8s"), "{told}");
        assert_eq!(refused(&place, 8, rests_until), "granted");
        let rests_until = place.state().rests_until.unwrap();
        // However fast it was loaded, or if it never was.
        assert!(rests_until >= now + SHORTEST_REST);
        assert!(refused(&place, 8, rests_until - SHORTEST_REST).contains("rests between two"));
        assert_eq!(refused(&place, 0, rests_until - SHORTEST_REST), "granted");
    }
}
