//! The limit of locked memory, lifted while maps are made: kernels before 5.11 charge maps to it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lifts the limit as long as it lives. Given back after, because a command inherits its starter's
/// limits and must not find other ones under jobtrace.
pub struct LiftedMemlock(Rlimit);

impl LiftedMemlock {
    /// Lifts it as far as the caller may; where that is too little the kernel refuses the map itself.
    pub fn lift() -> Self {
        let found = getrlimit(Resource::Memlock);
        let unlimited = Rlimit { current: None, maximum: None };
        if setrlimit(Resource::Memlock, unlimited).is_err() {
            let _ = setrlimit(Resource::Memlock, Rlimit { current: found.maximum, ..found });
        }
        Self(found)
    }
}

impl Drop for LiftedMemlock {
    fn drop(&mut self) {
        // Lowering is never refused.
        let _ = setrlimit(Resource::Memlock, self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_lifted_and_given_back() {
        let found = getrlimit(Resource::Memlock);
        let low = Rlimit { current: Some(0), ..found };
        setrlimit(Resource::Memlock, low).unwrap();
        let lifted = LiftedMemlock::lift();
        assert_ne!(getrlimit(Resource::Memlock).current, low.current);
        drop(lifted);
        assert_eq!(getrlimit(Resource::Memlock), low);
        setrlimit(Resource::Memlock, found).unwrap();
    }
}
