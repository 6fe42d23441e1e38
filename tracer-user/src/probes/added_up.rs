//! The structs of all CPUs added up into one, word by word: each is gone through once and from front to back, as
//! memory is read fastest, and what a word means is asked once for all of them.

use std::{mem::offset_of, ops::Range};

use tracer_ebpf::{
    loglinear::{BUCKETS, KernelHist},
    table::{Kind, Measurement, Place},
};

use crate::bpf::lookup::bytes_of_words;

const WORD_BYTES: usize = size_of::<u64>();

/// How words of two CPUs make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Each is a number; their sum.
    Sum,
    /// Each holds two counts of 32 bits; their sums, which wrap as they do.
    Counts,
    /// The larger one.
    Largest,
}

/// The sum of the structs that were added, of one type.
pub struct AddedUp {
    /// Which words are added by which rule: from the first to the last word.
    parts: Vec<(Range<usize>, Rule)>,
    words: Vec<u64>,
}

impl AddedUp {
    /// Of structs of `bytes`, whole words, in which `offset` tells the places of the fields of `tables`. What is no
    /// histogram is a number.
    pub fn of(
        bytes: usize,
        tables: &[&Measurement],
        offset: impl Fn(Place) -> Option<usize>,
    ) -> Self {
        let fields = tables.iter().flat_map(|table| table.fields);
        let histograms = fields.filter(|field| field.kind == Kind::Histogram);
        let mut begins: Vec<usize> = histograms.filter_map(|field| offset(field.place)).collect();
        begins.sort_unstable();
        let mut parts = Vec::new();
        let mut after = 0;
        for begin in begins {
            let max = (begin + offset_of!(KernelHist, max)) / WORD_BYTES;
            let buckets = (begin + offset_of!(KernelHist, buckets)) / WORD_BYTES;
            let end = buckets + BUCKETS * size_of::<u32>() / WORD_BYTES;
            parts.push((after..max, Rule::Sum));
            parts.push((max..buckets, Rule::Largest));
            parts.push((buckets..end, Rule::Counts));
            after = end;
        }
        let words = bytes / WORD_BYTES;
        parts.push((after..words, Rule::Sum));
        Self { parts, words: vec![0; words] }
    }

    /// Begins anew, with zeros.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Adds one CPU's.
    pub fn add(&mut self, cpu: &[u8]) {
        for (part, rule) in &self.parts {
            let sums = &mut self.words[part.clone()];
            let bytes = &cpu[part.start * WORD_BYTES..part.end * WORD_BYTES];
            let words = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
            match rule {
                Rule::Sum => {
                    sums.iter_mut().zip(words).for_each(|(sum, word)| *sum = sum.wrapping_add(word))
                }
                Rule::Largest => {
                    sums.iter_mut().zip(words).for_each(|(most, word)| *most = word.max(*most));
                }
                Rule::Counts => {
                    let counts = bytes.as_chunks().0.iter().map(|count| u32::from_ne_bytes(*count));
                    let sums = halves(sums).iter_mut();
                    sums.zip(counts).for_each(|(sum, count)| *sum = sum.wrapping_add(count));
                }
            }
        }
    }

    /// The sum, as one such struct.
    pub fn bytes(&self) -> &[u8] {
        bytes_of_words(&self.words)
    }
}

/// Each word as its two halves.
fn halves(words: &mut [u64]) -> &mut [u32] {
    // SAFETY: any bytes are integers, and a word is aligned as its half must be.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 2) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::tables::{FAULT, NET, SCHED},
        probes::{
            decode::bytes_of,
            slot_sum::{job_place, latency_place},
        },
    };
    use tracer_ebpf::tables::{job::JobBank, latency::LatencyBank};

    fn of_banks() -> AddedUp {
        AddedUp::of(size_of::<JobBank>(), &[&SCHED, &FAULT, &NET], job_place)
    }

    #[test]
    fn every_word_is_of_one_part() {
        let of_latencies = AddedUp::of(size_of::<LatencyBank>(), &[&FAULT], latency_place);
        for added_up in [of_banks(), of_latencies] {
            let words = added_up.parts.iter().flat_map(|(part, _)| part.clone());
            assert!(words.eq(0..added_up.words.len()), "{:?}", added_up.parts);
        }
    }

    #[test]
    fn banks_of_two_cpus_add_up_and_begin_anew() {
        // SAFETY: all integers.
        let mut first: JobBank = unsafe { std::mem::zeroed() };
        first.on_cpu_ns = 7;
        first.sleep_ns.sum = u64::from(u32::MAX);
        first.sleep_ns.max = 9;
        first.sleep_ns.buckets[3] = u32::MAX;
        first.net[3].received_calls = 5;
        first.connections = 2;
        let mut second = first;
        second.sleep_ns.max = 8;
        second.sleep_ns.buckets[2] = 4;
        let mut added_up = of_banks();
        added_up.add(bytes_of(&first));
        added_up.clear();
        [first, second].iter().for_each(|bank| added_up.add(bytes_of(bank)));
        // SAFETY: as many bytes, all integers.
        let sum: JobBank = unsafe { added_up.bytes().as_ptr().cast::<JobBank>().read_unaligned() };
        assert_eq!((sum.on_cpu_ns, sum.sleep_ns.sum), (14, 2 * u64::from(u32::MAX)));
        assert_eq!((sum.sleep_ns.max, sum.net[3].received_calls, sum.connections), (9, 10, 4));
        assert_eq!(
            sum.sleep_ns.buckets[2..5],
            [4, u32::MAX - 1, 0],
            "no carry from one to the next"
        );
    }
}
