//! The bpftrace one-liners that keep histograms by cgroup.

/// As bpftrace's own `runqlat.bt`, keyed by cgroup. The key is the cgroup of the task that leaves
/// the CPU, which is what `cgroup` gives on this hook: the right one, of the task that enters it,
/// would take another map and cost more.
pub const RUN_QUEUE_BY_CGROUP: &str = "\
tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @queued[args->pid] = nsecs; }
tracepoint:sched:sched_switch {
  if (args->prev_state == 0) { @queued[args->prev_pid] = nsecs; }
  $since = @queued[args->next_pid];
  if ($since) { @usecs[cgroup] = hist((nsecs - $since) / 1000); }
  delete(@queued[args->next_pid]);
}
interval:s:INTERVAL { print(@usecs); clear(@usecs); }
END { clear(@queued); }";

/// As bpftrace's own `biolatency.bt`, with the cgroup of the issuing task.
pub const BLOCK_BY_CGROUP: &str = "\
tracepoint:block:block_rq_issue {
  @start[args->dev, args->sector] = nsecs; @by[args->dev, args->sector] = cgroup;
}
tracepoint:block:block_rq_complete /@start[args->dev, args->sector]/ {
  @usecs[@by[args->dev, args->sector]] = hist((nsecs - @start[args->dev, args->sector]) / 1000);
  delete(@start[args->dev, args->sector]); delete(@by[args->dev, args->sector]);
}
interval:s:INTERVAL { print(@usecs); clear(@usecs); }
END { clear(@start); clear(@by); }";

/// A count, no latency.
pub const FAULTS_BY_CGROUP: &str = "\
tracepoint:exceptions:page_fault_user { @faults[cgroup] = count(); }
interval:s:INTERVAL { print(@faults); clear(@faults); }";
