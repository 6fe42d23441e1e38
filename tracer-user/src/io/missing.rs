//! What the figures lack, in words.

use tracer_ebpf::tables::io::{IO_CELLS, IO_MOUNTS, IO_REQUESTS, IO_SUBMISSIONS};

use crate::base::units::count;

/// Of these numbers, in the order of the words.
pub fn notes(numbers: [u64; 6]) -> Vec<String> {
    let words: [(&str, &str, String); 6] = [
        (
            "system call of a 32-bit program is",
            "system calls of 32-bit programs are",
            "missing from the I/O figures".into(),
        ),
        (
            "operation on files has",
            "operations on files have",
            format!(
                "no mount in the I/O figures: there is room for {IO_CELLS} pairs of a file system and an operation"
            ),
        ),
        (
            "failed operation on files is",
            "failed operations on files are",
            "missing from the list of errors".into(),
        ),
        (
            "operation on files has",
            "operations on files have",
            "no latency: the begin was not seen".into(),
        ),
        (
            "request to io_uring is",
            "requests to io_uring are",
            format!("missing: there is room for {IO_REQUESTS} at once"),
        ),
        (
            "request to libaio is",
            "requests to libaio are",
            format!("missing: of each call {IO_SUBMISSIONS} are looked at"),
        ),
    ];
    let told = numbers.into_iter().zip(words).filter(|(number, _)| *number > 0);
    told.map(|(number, (one, several, what))| {
        format!("{} {} {what}", count(number), if number == 1 { one } else { several })
    })
    .collect()
}

/// Of kernels where another task may interrupt a program at a call: its calls there then run none.
pub fn runs(missed: u64) -> String {
    let runs = if missed == 1 { "run" } else { "runs" };
    format!(
        "this kernel left out {} {runs} of the programs at the begin and end of calls, of whichever task: operations on \
         files, or their latencies, may be missing from the I/O figures",
        count(missed)
    )
}

/// Of a device number, by which both are told as the first of these types and mounts.
pub fn mounted_anew(([fs, at], [later_fs, later]): &([String; 2], [String; 2])) -> String {
    format!(
        "what was done below {later} ({later_fs}) may be told of {at} ({fs}): both had the same device number, one after the other"
    )
}

/// Of a job with more mounts than there is room for.
pub fn mounts() -> String {
    format!(
        "there are more mounts than can be followed ({IO_MOUNTS}, less where their lines are long): operations on the \
         others count for the mounts above them or have none"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_in_whole_sentences() {
        assert!(notes([0; 6]).is_empty());
        assert_eq!(
            notes([1200, 3, 4, 5, 6, 7]),
            [
                "1.20k system calls of 32-bit programs are missing from the I/O figures",
                "3 operations on files have no mount in the I/O figures: there is room for 256 pairs of a file system \
                 and an operation",
                "4 failed operations on files are missing from the list of errors",
                "5 operations on files have no latency: the begin was not seen",
                "6 requests to io_uring are missing: there is room for 8192 at once",
                "7 requests to libaio are missing: of each call 32 are looked at",
            ]
        );
        assert_eq!(
            notes([0, 0, 0, 1, 0, 0]),
            ["1 operation on files has no latency: the begin was not seen"]
        );
        assert!(runs(5_974).starts_with("this kernel left out 5.97k runs of the programs"));
        assert_eq!(
            mounts(),
            "there are more mounts than can be followed (4096, less where their lines are long): operations on the \
             others count for the mounts above them or have none"
        );
    }
}
