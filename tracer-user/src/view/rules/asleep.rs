//! Rules for sleep. That a task sleeps is no trouble in itself: helper threads do it all the time. So a rule
//! speaks where every task slept, or where cores were left idle meanwhile.

use tracer_ebpf::handle::{Handle, Number};

use super::{Facts, Finding, Tone, calls::times, cpu::FEW_CORES};
use crate::{
    base::units::{at_least, cores},
    model::tables::Sched,
    view::node_use::millicores,
};

/// Half of the elapsed time with every task asleep: the job waited for something outside.
pub(super) const ASLEEP: f64 = 0.50;
/// A cause of this part of the sleep is what there is to say.
const MOSTLY: f64 = 0.5;
/// Tasks that sleep leave cores idle where they are as many, or nearly.
pub(super) const FILL: f64 = 0.75;
/// Idle helpers wait for seconds at a time; tasks that wait for each other are woken often.
const OFTEN_NS: u64 = 100_000_000;
/// Fewer waits than this are no habit either.
pub(super) const MANY: u64 = 1_000;
/// Tasks asleep on pipes on average, in thousandths, from which there is a pool of workers.
const POOL: u64 = 2_000;
/// Fewer that wait for children, in thousandths, are not worth a word.
const FEW: u64 = 100;
/// Its idle cores, of those held: with two of them, one worker leaves not quite half of them idle.
const POOL_IDLE: f64 = 0.25;
/// A pool waits for locks too, and so do threads that are there and never used: these leave no moment as much busier
/// than the average.
const WAS_BUSIER: f64 = 1.3;
/// A core's worth that is used, in thousandths, for one task that works.
const ONE_WORKS: std::ops::RangeInclusive<u64> = 500..=1_500;

const TIMER: Cause = (Sched::sleep_timer_ns, Sched::sleep_timer_waits);
const LOCK: Cause = (Sched::sleep_lock_ns, Sched::sleep_lock_waits);
const POLL: Cause = (Sched::sleep_poll_ns, Sched::sleep_poll_waits);
const SOCKET: Cause = (Sched::sleep_socket_ns, Sched::sleep_socket_waits);
const PIPE: Cause = (Sched::sleep_pipe_ns, Sched::sleep_pipe_waits);
const SIGNAL: Cause = (Sched::sleep_signal_ns, Sched::sleep_signal_waits);
const MESSAGE: Cause = (Sched::sleep_message_ns, Sched::sleep_message_waits);
const RING: Cause = (Sched::sleep_ring_ns, Sched::sleep_ring_waits);
const IOCTL: Cause = (Sched::sleep_ioctl_ns, Sched::sleep_ioctl_waits);
const STOPPED: Cause = (Sched::sleep_stopped_ns, Sched::sleep_stopped_waits);
const OTHER: Cause = (Sched::sleep_other_ns, Sched::sleep_other_waits);
const CHILD: Cause = (Sched::sleep_child_ns, Sched::sleep_child_waits);

type Cause = (Handle<Number>, Handle<Number>);

pub(super) fn all_asleep(facts: &Facts) -> Option<Finding> {
    let asleep_ns = facts.all_asleep_ns().filter(|_| !facts.is_hardly_counted())?;
    let share = facts.judged(asleep_ns);
    let why = main_cause(facts).unwrap_or_else(|| {
        ": it waited for timers, locks, the network or other programs, not for CPU or disk".into()
    });
    let time = match share {
        1.0.. => "all the time".to_owned(),
        _ => format!("for {} of {}", at_least(share), facts.judged_name()),
    };
    let text = format!("every task slept {time}{why}");
    (share >= ASLEEP).then(|| Finding::new(facts.share(asleep_ns), Tone::Warn, text))
}

/// What most of the sleep was for, and what that usually means.
///
/// Who waits for a child waits for what the child does, which counts by itself: it is left out, unless
/// nothing else is there.
fn main_cause(facts: &Facts) -> Option<String> {
    let child_ns = facts.waited(CHILD)?.ns;
    // Sleep counts when it ends.
    if (facts.asleep_ns? as f64) < facts.all_asleep_ns()? as f64 * MOSTLY {
        return Some(", mostly in sleeps that have not ended, so that nobody knows what for, or without tasks".into());
    }
    let else_ns = facts.asleep_ns?.saturating_sub(child_ns);
    if (else_ns as f64) < facts.all_asleep_ns()? as f64 * MOSTLY {
        return Some(", mostly for children, which did not compute either".into());
    }
    let is_most = |ns: u64| ns as f64 >= else_ns as f64 * MOSTLY;
    let files = facts.asleep_on_files()?;
    let files_ns = files.iter().fold(0, |sum: u64, part| sum.saturating_add(part.ns));
    if is_most(files_ns) {
        let most = files.iter().max_by_key(|part| part.ns)?;
        return Some(format!(
            ", mostly in file calls: {}, which another program or machine serves",
            most.what
        ));
    }
    let of: [(Cause, &str); 11] = [
        (TIMER, "until a timer ran out: it paused by itself (sleep)"),
        (LOCK, "for locks: its threads waited for each other, or for work"),
        (POLL, "in poll: it waited for the network or other programs, as MPI ranks do"),
        (SOCKET, "on sockets: it waited for the network or other programs"),
        (PIPE, "reading or writing pipes or sockets: it waited for input, or for whom it feeds"),
        (SIGNAL, "for a signal of another program or a timer"),
        (MESSAGE, "for messages or semaphores of other programs"),
        (RING, "for asynchronous I/O to complete"),
        (IOCTL, "in drivers (ioctl), as those of GPUs"),
        (STOPPED, "stopped or frozen: by a signal, a debugger or its scheduler"),
        (OTHER, "in page faults that a program serves, or in calls that do not tell what for"),
    ];
    let of_most = |cause| facts.waited(cause).is_some_and(|waited| is_most(waited.ns));
    let most = of.into_iter().find(|(cause, _)| of_most(*cause));
    most.map(|(_, text)| format!(", mostly {text}"))
}

/// A pool of workers that waits for one of them.
pub(super) fn pool(facts: &Facts) -> Option<Finding> {
    let idle = idle_cores(facts, POOL_IDLE)?;
    let was_busier = facts.busiest_millicores() as f64 >= idle.wanted as f64 * WAS_BUSIER;
    let (locks, on) = match was_busier {
        true => (Some(LOCK), "on pipes and for locks"),
        false => (None, "on pipes"),
    };
    let waits = || [Some(PIPE), locks].into_iter().flatten();
    let children = sleepers(facts, CHILD)?;
    let waiting: Option<Vec<u64>> = waits().map(|cause| sleepers(facts, cause)).collect();
    let waiting = waiting?.into_iter().fold(0, u64::saturating_add);
    let asleep_ns = facts.asleep_ns?;
    let of_pool = waits().chain([CHILD]).map(|cause| Some(facts.waited(cause)?.ns as f64));
    let is_pool = waiting >= POOL && of_pool.sum::<Option<f64>>()? >= asleep_ns as f64 * MOSTLY;
    if !is_pool || !ONE_WORKS.contains(&idle.wanted) {
        return None;
    }
    let of_children = match children {
        FEW.. => format!(" and {} for children", cores(children)),
        _ => String::new(),
    };
    let text = format!(
        "{} of {} cores used while {} tasks on average waited {on}{of_children}: \
         usually workers that wait for one of them",
        cores(idle.used),
        cores(idle.held),
        cores(waiting)
    );
    Some(Finding::new(idle.share, Tone::Warn, text))
}

/// Whether a rule here says why cores were idle.
pub(super) fn explains_idle_cores(facts: &Facts) -> bool {
    [pool, poll, locks].iter().any(|rule| rule(facts).is_some())
}

/// Whether tasks that were blocked or asleep would fill so many idle cores, in thousandths: then nobody knows that only
/// one of them ever has work. Parents of what runs would not.
pub(super) fn fills(facts: &Facts, idle: u64) -> bool {
    let children_ns = facts.waited(CHILD).map_or(0, |children| children.ns);
    let asleep_ns = facts.asleep_ns.unwrap_or(0).saturating_sub(children_ns);
    let waiting_ns = asleep_ns.saturating_add(facts.blocked_ns.unwrap_or(0));
    millicores(waiting_ns, facts.counted_ns())
        .is_some_and(|tasks| tasks as f64 >= idle as f64 * FILL)
}

/// Ranks or workers that wait for messages.
pub(super) fn poll(facts: &Facts) -> Option<Finding> {
    let usually = "tasks that wait for each other or the network, as MPI ranks do";
    often(facts, POLL, "in poll", usually)
}

/// Threads that wait for each other.
pub(super) fn locks(facts: &Facts) -> Option<Finding> {
    let usually = "threads that contend for a lock, wait at barriers, or wait for work in a pool";
    often(facts, LOCK, "for locks", usually)
}

/// Short waits of one cause, many of them, by as many tasks as there were idle cores.
fn often(facts: &Facts, cause: Cause, of: &str, usually: &str) -> Option<Finding> {
    let idle = idle_cores(facts, FEW_CORES)?;
    let (waited, sleepers) = (facts.waited(cause)?, sleepers(facts, cause)?);
    let fill = sleepers as f64 >= idle.held.saturating_sub(idle.wanted) as f64 * FILL;
    if !fill || waited.count < MANY || waited.mean_ns() > OFTEN_NS {
        return None;
    }
    let text = format!(
        "{} of {} cores used while {} tasks on average slept {of}, {}: usually {usually}",
        cores(idle.used),
        cores(idle.held),
        cores(sleepers),
        times(waited)
    );
    Some(Finding::new(idle.share, Tone::Warn, text))
}

/// How many tasks slept for `cause` on average, in thousandths.
fn sleepers(facts: &Facts, cause: Cause) -> Option<u64> {
    millicores(facts.waited(cause)?.ns, facts.counted_ns())
}

/// Cores, in thousandths, many of which were idle.
struct IdleCores {
    used: u64,
    /// Those that it could have used.
    wanted: u64,
    held: u64,
    /// Those of the held that it could not have used.
    share: f64,
}

/// Those of which more than `least` was idle; nothing where every task slept: of that another rule speaks.
fn idle_cores(facts: &Facts, least: f64) -> Option<IdleCores> {
    let (used, wanted) = (facts.used_millicores()?, facts.wanted_millicores()?);
    let held = facts.held_millicores.filter(|held| *held > 1_000)?;
    let share = 1.0 - wanted as f64 / held as f64;
    let is_asleep = all_asleep(facts).is_some();
    (share > least && !is_asleep).then_some(IdleCores { used, wanted, held, share })
}
