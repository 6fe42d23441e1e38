//! The network: what tasks hand to their sockets and take from them, by the kernel's own word at the end of
//! each call. Nothing runs for a packet, but for one that TCP sends again.
//!
//! A message is charged to the job of the task that is in the call, by the task's own cgroup: the record of
//! its CPU is another family's, and stale while that one is detached.

use core::{arch::asm, ptr::addr_of_mut};

use aya_ebpf::{
    bindings::file,
    helpers::generated::bpf_sock_from_file,
    macros::{btf_tracepoint, fexit},
    programs::{BtfTracePointContext, FExitContext},
};
use tracer_ebpf::{
    kernel_fields::{fields::*, globals},
    tables::{
        job::JobBank,
        net::{FAMILIES, NetCounts, family},
    },
};

use crate::{
    current,
    kernel::{Kernel, cgroup_id, global, has, load},
    maps::{bank, cpu_record, moved, slot_of},
};

// Of the kernel's interface: sys/socket.h, netinet/in.h, linux/tcp.h, the same on x86-64 and ARM.
const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const SOCK_STREAM: u16 = 1;
const SOCK_DGRAM: u16 = 2;
const IPPROTO_TCP: u16 = 6;
const IPPROTO_UDP: u16 = 17;
const IPPROTO_MPTCP: u16 = 262;
const MSG_PEEK: u32 = 0x2;
const MSG_ERRQUEUE: u32 = 0x2000;
const TCP_SYN_SENT: u32 = 2;
const TCP_CLOSE: u32 = 7;

/// A message was handed to a socket.
#[btf_tracepoint(function = "sock_send_length")]
pub fn sock_send_length(ctx: BtfTracePointContext) -> i32 {
    sent(ctx.arg(0), ctx.arg::<u64>(1) as i32)
}

/// A message was taken from a socket.
#[btf_tracepoint(function = "sock_recv_length")]
pub fn sock_recv_length(ctx: BtfTracePointContext) -> i32 {
    received(ctx.arg(0), ctx.arg::<u64>(1) as i32, ctx.arg::<u64>(2) as u32)
}

/// Programs for kernels without the tracepoints (before 6.3): on the return of what each protocol does for a
/// message. Not of the functions that lead there, of which the compiler leaves nothing in their callers.
macro_rules! message_programs {
    ($($name:ident: $function:literal, $count:expr;)*) => {
        $(
            #[fexit(function = $function)]
            pub fn $name(ctx: FExitContext) -> i32 {
                let count: fn(&FExitContext, Kernel) -> i32 = $count;
                count(&ctx, load(ctx.arg::<Kernel>(0), SOCKET_SK))
            }
        )*
    };
}

message_programs! {
    inet_sendmsg: "inet_sendmsg", |ctx, socket| sent(socket, ctx.arg::<u64>(3) as i32);
    inet6_sendmsg: "inet6_sendmsg", |ctx, socket| sent(socket, ctx.arg::<u64>(3) as i32);
    unix_stream_sendmsg: "unix_stream_sendmsg", |ctx, socket| sent(socket, ctx.arg::<u64>(3) as i32);
    unix_dgram_sendmsg: "unix_dgram_sendmsg", |ctx, socket| sent(socket, ctx.arg::<u64>(3) as i32);
    inet_recvmsg: "inet_recvmsg", |ctx, socket| taken(ctx, socket);
    inet6_recvmsg: "inet6_recvmsg", |ctx, socket| taken(ctx, socket);
    unix_stream_recvmsg: "unix_stream_recvmsg", |ctx, socket| taken(ctx, socket);
    unix_dgram_recvmsg: "unix_dgram_recvmsg", |ctx, socket| taken(ctx, socket);
}

/// A protocol took a message from a socket.
#[inline(always)]
fn taken(ctx: &FExitContext, socket: Kernel) -> i32 {
    received(socket, ctx.arg::<u64>(4) as i32, ctx.arg::<u64>(3) as u32)
}

/// A page was handed to a socket by sendfile or splice, on kernels without the tracepoint.
#[fexit(function = "inet_sendpage")]
pub fn inet_sendpage(ctx: FExitContext) -> i32 {
    page_sent(&ctx)
}

/// The same of a unix stream.
#[fexit(function = "unix_stream_sendpage")]
pub fn unix_stream_sendpage(ctx: FExitContext) -> i32 {
    page_sent(&ctx)
}

/// Only sockets that take a page as it is: the others make a message of it.
#[inline(always)]
fn page_sent(ctx: &FExitContext) -> i32 {
    let socket: Kernel = load(ctx.arg::<Kernel>(0), SOCKET_SK);
    if !takes_pages(socket) {
        return 0;
    }
    sent(socket, ctx.arg::<u64>(5) as i32)
}

/// Pages were spliced from a socket, past what the tracepoint tells of. Only sockets that give them away:
/// from the others the kernel receives as ever.
#[fexit(function = "sock_splice_read")]
pub fn sock_splice_read(ctx: FExitContext) -> i32 {
    let file: *mut file = ctx.arg(0);
    // SAFETY: the function's own argument.
    let socket: Kernel = unsafe { bpf_sock_from_file(file) }.cast();
    if socket.is_null() {
        return 0;
    }
    let socket: Kernel = load(socket, SOCKET_SK);
    if !takes_pages(socket) {
        return 0;
    }
    received(socket, ctx.arg::<u64>(5) as i32, 0)
}

/// TCP sent a segment again, mostly for an interrupt: its job is that of the socket.
#[btf_tracepoint(function = "tcp_retransmit_skb")]
pub fn tcp_retransmit_skb(ctx: BtfTracePointContext) -> i32 {
    if ctx.arg::<u64>(2) as i32 != 0 {
        return 0;
    }
    sent_again(ctx.arg(0), ctx.arg(1))
}

/// The same on kernels that tell of those alone that were sent (before 6.16).
#[btf_tracepoint(function = "tcp_retransmit_skb")]
pub fn tcp_retransmit_sent(ctx: BtfTracePointContext) -> i32 {
    sent_again(ctx.arg(0), ctx.arg(1))
}

/// A socket changed its state: of interest where a task begins a connection.
#[btf_tracepoint(function = "inet_sock_set_state")]
pub fn inet_sock_set_state(ctx: BtfTracePointContext) -> i32 {
    let socket: Kernel = ctx.arg(0);
    if ctx.arg::<u64>(1) as u32 == TCP_CLOSE
        && ctx.arg::<u64>(2) as u32 == TCP_SYN_SENT
        && load::<u16, _>(socket, SOCK_PROTOCOL) == IPPROTO_TCP
        && let Some(bank) = current_bank()
    {
        // SAFETY: this CPU's own bank.
        unsafe { (*bank).connections += 1 };
    }
    0
}

#[inline(always)]
fn sent(socket: Kernel, length: i32) -> i32 {
    // An error, or nothing done yet.
    if length < 0 {
        return 0;
    }
    if let Some(bank) = current_bank() {
        // SAFETY: this CPU's own bank.
        unsafe {
            let counts = counts(bank, family_of(socket));
            (*counts).sent_bytes += length as u64;
            (*counts).sent_calls += 1;
        }
    }
    0
}

#[inline(always)]
fn received(socket: Kernel, length: i32, flags: u32) -> i32 {
    // Only looked at; or no message of the peer's, but the kernel's own on one that was sent.
    if length < 0 || flags & (MSG_PEEK | MSG_ERRQUEUE) != 0 {
        return 0;
    }
    if let Some(bank) = current_bank() {
        // SAFETY: this CPU's own bank.
        unsafe {
            let counts = counts(bank, family_of(socket));
            (*counts).received_bytes += length as u64;
            (*counts).received_calls += 1;
        }
    }
    0
}

#[inline(always)]
fn sent_again(socket: Kernel, packet: Kernel) -> i32 {
    let slot = slot_of(0, cgroup_id(load(socket, SOCK_CGROUP))).into();
    if let (Some(bank), Some(cpu)) = (bank(slot), cpu_record()) {
        // SAFETY: this CPU's own bank and record.
        unsafe {
            (*bank).retransmits += segments(packet);
            moved(cpu, slot);
        }
    } else {
        without_bank();
    }
    0
}

/// Segments that TCP makes of one of its packets: as many as the kernel adds to `RetransSegs`.
#[inline(always)]
fn segments(packet: Kernel) -> u64 {
    if !has(&globals::SKB_CONTROL) || !has(&globals::TCP_CONTROL_SEGMENTS) {
        return 1;
    }
    // SAFETY: bytes of the packet's own control block, an array, of which the verifier lets single ones
    // be loaded.
    let control = unsafe { packet.add(global(&globals::SKB_CONTROL) as usize) };
    let low = u64::from(load::<u8, _>(control, TCP_CONTROL_SEGMENTS));
    // SAFETY: as above.
    let high = u64::from(load::<u8, _>(unsafe { control.add(1) }, TCP_CONTROL_SEGMENTS));
    if low | high == 0 { 1 } else { high << 8 | low }
}

/// The family of a socket, by [`FAMILIES`].
#[inline(always)]
fn family_of(socket: Kernel) -> u32 {
    let (own, kind) = (load::<u16, _>(socket, SOCK_FAMILY), load::<u16, _>(socket, SOCK_TYPE));
    if own == AF_UNIX {
        return family::UNIX;
    }
    if own != AF_INET && own != AF_INET6 {
        return family::OTHER;
    }
    match (kind, load::<u16, _>(socket, SOCK_PROTOCOL)) {
        (SOCK_STREAM, IPPROTO_TCP | IPPROTO_MPTCP) => family::TCP,
        (SOCK_DGRAM, IPPROTO_UDP) => family::UDP,
        _ => family::OTHER,
    }
}

/// Whether a socket moves pages in ways of its own.
#[inline(always)]
fn takes_pages(socket: Kernel) -> bool {
    let family = family_of(socket);
    family == family::TCP
        || family == family::UNIX && load::<u16, _>(socket, SOCK_TYPE) == SOCK_STREAM
}

/// The counts of a family in a bank.
///
/// # Safety
/// `bank` is a bank.
#[inline(always)]
unsafe fn counts(bank: *mut JobBank, family: u32) -> *mut NetCounts {
    const _: () = assert!(FAMILIES.len() == 4);
    let mut index = u64::from(family);
    // SAFETY: masks a register, which the verifier must see; the index is then within the array.
    unsafe {
        asm!("{0} &= 3", inout(reg) index, options(pure, nomem, nostack));
        addr_of_mut!((*bank).net).cast::<NetCounts>().add(index as usize)
    }
}

/// The bank of the running task's slot on this CPU.
#[inline(always)]
fn current_bank() -> Option<*mut JobBank> {
    let bank = bank(current::slot());
    if bank.is_none() {
        without_bank();
    }
    bank
}

#[inline(always)]
fn without_bank() {
    if let Some(cpu) = cpu_record() {
        // SAFETY: this CPU's own record.
        unsafe { (*cpu).no_bank += 1 };
    }
}
