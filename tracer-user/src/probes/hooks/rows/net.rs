//! What is sent and received: one pair of tracepoints where the kernel has them, else the protocols' own functions.

use super::super::HookRow;
use crate::{
    bpf::hook::{
        Hook,
        Point::{FunctionExit, Tracepoint},
    },
    probes::{families::Family, needs::*},
};

const fn row(hook: Hook, feeds: &'static [&'static str], gives: &'static str) -> HookRow {
    HookRow { hook, family: Family::Net, feeds, gives }
}

/// Of a protocol's message, as function `function` returns; its program has the same name.
const fn of_return(
    function: &'static str,
    arguments: &'static [&'static str],
    group: &'static str,
    feeds: &'static [&'static str],
    gives: &'static str,
) -> HookRow {
    let hook = Hook {
        program: function,
        point: FunctionExit(function, arguments),
        needs: OUTER_MESSAGE_NEEDS,
        group,
        covers: &[],
    };
    row(hook, feeds, gives)
}

pub const ROWS: &[HookRow] = &[
    row(
        Hook {
            program: "sock_send_length",
            point: Tracepoint("sock_send_length", MESSAGE_LENGTH),
            needs: MESSAGE_NEEDS,
            group: SENT_GROUPS[0],
            covers: SENT_GROUPS,
        },
        SENT,
        "what is sent through sockets",
    ),
    of_return("inet_sendmsg", SENDING, SENT_GROUPS[0], SENT, "what is sent by IPv4"),
    of_return("inet6_sendmsg", SENDING, SENT_GROUPS[1], SENT, "what is sent by IPv6"),
    of_return("unix_stream_sendmsg", SENDING, SENT_GROUPS[2], SENT, "what is sent by unix streams"),
    of_return(
        "unix_dgram_sendmsg",
        SENDING,
        SENT_GROUPS[3],
        SENT,
        "what is sent by unix datagrams",
    ),
    of_return(
        "inet_sendpage",
        PAGE_LENGTH,
        SENT_GROUPS[4],
        &[],
        "what sendfile and splice send by TCP",
    ),
    of_return(
        "unix_stream_sendpage",
        PAGE_LENGTH,
        SENT_GROUPS[5],
        &[],
        "what sendfile and splice send by unix streams",
    ),
    row(
        Hook {
            program: "sock_recv_length",
            point: Tracepoint("sock_recv_length", MESSAGE_LENGTH),
            needs: MESSAGE_NEEDS,
            group: RECEIVED_GROUPS[0],
            covers: RECEIVED_GROUPS,
        },
        RECEIVED,
        "what is received through sockets",
    ),
    of_return("inet_recvmsg", RECEIVING, RECEIVED_GROUPS[0], RECEIVED, "what is received by IPv4"),
    of_return("inet6_recvmsg", RECEIVING, RECEIVED_GROUPS[1], RECEIVED, "what is received by IPv6"),
    of_return(
        "unix_stream_recvmsg",
        RECEIVING,
        RECEIVED_GROUPS[2],
        RECEIVED,
        "what is received by unix streams",
    ),
    of_return(
        "unix_dgram_recvmsg",
        RECEIVING,
        RECEIVED_GROUPS[3],
        RECEIVED,
        "what is received by unix datagrams",
    ),
    of_return(
        "sock_splice_read",
        SPLICE_LENGTH,
        "pages received",
        &[],
        "bytes spliced from TCP and unix sockets",
    ),
    row(
        Hook {
            program: "tcp_retransmit_skb",
            point: Tracepoint("tcp_retransmit_skb", &["*sock", "*sk_buff", "scalar"]),
            needs: RETRANSMIT_NEEDS,
            group: "segments sent again",
            covers: &[],
        },
        &["retransmits"],
        "retransmits",
    ),
    row(
        Hook {
            program: "tcp_retransmit_sent",
            point: Tracepoint("tcp_retransmit_skb", &["*sock", "*sk_buff"]),
            needs: RETRANSMIT_NEEDS,
            group: "segments sent again",
            covers: &[],
        },
        &["retransmits"],
        "retransmits",
    ),
    row(
        Hook {
            program: "inet_sock_set_state",
            point: Tracepoint("inet_sock_set_state", MESSAGE_LENGTH),
            needs: CONNECTION_NEEDS,
            group: "connections",
            covers: &[],
        },
        &["connections"],
        "connections",
    ),
];
