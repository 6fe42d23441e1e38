//! Cells as the kernel fills them, read again and again.

use tracer_ebpf::tables::block::BlockCell;

use super::*;
use crate::{model::tables::Block, probes::decode::bytes_of};

fn disk(counts_queue_time: bool) -> Device {
    Device { name: "vda".into(), counts_queue_time }
}

fn raw(cell: &BlockCell) -> Vec<u64> {
    let words = bytes_of(cell).chunks_exact(8);
    words.map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()
}

fn empty() -> BlockCell {
    // SAFETY: all integers.
    unsafe { std::mem::zeroed() }
}

#[test]
fn each_field_is_read_from_its_place() {
    let mut cell = empty();
    cell.key = u64::MAX;
    cell.errors = 2;
    cell.queue_ends.sum = 70;
    cell.queue_ends.max = 70;
    cell.queue_buckets[1] = 1;
    cell.device_ends.sum = 900;
    cell.device_ends.max = 500;
    cell.device_buckets[7] = 4;
    cell.size_ends.sum = 12_288;
    cell.size_ends.max = 4096;
    cell.size_buckets[24] = 3;
    let mut reader = CellReader::after(None);
    let group = reader.read(raw(&cell), &disk(true), 1);
    assert_eq!(group.tags, ["vda", "write"]);
    assert_eq!(group.number(Block::errors), Some(2));
    assert_eq!((group.number(Block::ops), group.number(Block::bytes)), (Some(3), Some(12_288)));
    let hist = |field| {
        let hist = group.hist(field).unwrap();
        (hist.sum, hist.max, hist.buckets().collect::<Vec<_>>())
    };
    assert_eq!(hist(Block::queue_latency_ns), (70, 70, vec![(0, 3), (1, 1)]));
    assert_eq!(hist(Block::device_latency_ns), (900, 500, vec![(7, 4)]));
    assert_eq!(hist(Block::size_bytes), (12_288, 4096, vec![(24, 3)]));
}

#[test]
fn requests_never_queued_are_what_is_left_and_never_shrink() {
    let (mut cell, mut reader) = (empty(), CellReader::after(None));
    let mut read = |queued: u32, requests: u32| {
        cell.queue_buckets[5] = queued;
        cell.device_buckets[9] = requests;
        let group = reader.read(raw(&cell), &disk(true), 0);
        let zeros = group.hist(Block::queue_latency_ns).unwrap().buckets().next();
        zeros.filter(|(bucket, _)| *bucket == 0).map_or(0, |(_, count)| count)
    };
    // Filed in the queue's histogram, and in the device's not yet, in the second to fourth reading.
    let readings = [(0, 0), (1, 0), (3, 9), (6, 10), (6, 16), (6, 17)];
    let zeros: Vec<u64> = readings.into_iter().map(|(q, d)| read(q, d)).collect();
    assert_eq!(zeros, [0, 0, 6, 6, 10, 11]);
}

#[test]
fn without_the_stamp_of_its_making_no_request_was_never_queued() {
    let mut cell = empty();
    cell.device_buckets[9] = 4;
    let mut reader = CellReader::after(None);
    let group = reader.read(raw(&cell), &disk(false), 0);
    assert!(group.hist(Block::queue_latency_ns).is_none());
    assert_eq!(group.hist(Block::device_latency_ns).unwrap().count(), 4);
}
