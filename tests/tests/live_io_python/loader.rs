//! A loader as those of training: worker processes read samples in random order, each from a file of its own or all from
//! one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jobtrace::record::parse;
use jobtrace_tests::{
    agree::{Agreement, tried_again},
    findings::{Said, said},
    rig::{mount::Ext4, venv::python},
    sibling::Sibling,
    traced::Traced,
};

use crate::{MIB, of_op, of_path, rows_below, traced};

/// Samples, their bytes, and how often each is read. There is a cell for each sample of each worker: 8,192 have room.
const SAMPLES: u64 = 3_000;
const SAMPLE_BYTES: u64 = 8 << 10;
const EPOCHS: u64 = 3;

/// A loader of samples: two forked worker processes get lists of them in random order, and read each.
const LOADER: &str = "
import multiprocessing, os, random, sys
kind, samples, size, epochs, folder = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
BATCH = 50

class Files:
    def __getitem__(self, sample):
        with open(f'{folder}/samples/{sample}', 'rb', buffering=0) as file:
            return file.read(size)

class Packed:
    file = None
    def __getitem__(self, sample):
        self.file = self.file or open(f'{folder}/packed', 'rb', buffering=0)
        return os.pread(self.file.fileno(), size, sample * size)

def work(data, batches, done):
    while (batch := batches.get()) is not None:
        done.put(sum(data[sample][-1] for sample in batch))

data = Files() if kind == 'files' else Packed()
fork = multiprocessing.get_context('fork')
batches, done = fork.Queue(), fork.Queue()
workers = [fork.Process(target=work, args=[data, batches, done]) for _ in range(2)]
for worker in workers:
    worker.start()
total = 0
for epoch in range(epochs):
    order = list(range(samples))
    random.shuffle(order)
    for at in range(0, samples, BATCH):
        batches.put(order[at:at + BATCH])
    total += sum(done.get() for _ in range(0, samples, BATCH))
for worker in workers:
    batches.put(None)
for worker in workers:
    worker.join()
print(total)
";

/// A folder with the samples, so `kept`.
fn samples(folder: &Path, kept: &str) -> PathBuf {
    fs::create_dir(folder).unwrap();
    let sample = |number| vec![u8::try_from(number % 251).unwrap(); SAMPLE_BYTES as usize];
    if kept == "packed" {
        fs::write(folder.join(kept), (0..SAMPLES).flat_map(sample).collect::<Vec<_>>()).unwrap();
    } else {
        fs::create_dir(folder.join("samples")).unwrap();
        for number in 0..SAMPLES {
            fs::write(folder.join("samples").join(number.to_string()), sample(number)).unwrap();
        }
    }
    folder.to_owned()
}

/// What the loader is told of samples that are so `kept` on a disk, beside one that does the same there; the disk, and
/// its run.
fn loads(kept: &str) -> (Ext4, Traced, Said) {
    let disk = Ext4::mount(128 * MIB).unwrap();
    let [own, beside] = ["own", "beside"].map(|name| samples(&disk.path().join(name), kept));
    let python = python();
    let numbers = [SAMPLES, SAMPLE_BYTES, EPOCHS].map(|number| number.to_string());
    let words = |folder: &Path| {
        let mut words = vec![python.to_str().unwrap().to_owned(), "-c".into(), LOADER.into()];
        words.push(kept.into());
        words.extend(numbers.clone());
        words.push(folder.to_str().unwrap().to_owned());
        words
    };
    // In turns before all others, as far as the machine is busy: what waits for a CPU is no I/O.
    let (own, others) = (words(&own), words(&beside));
    let own = ["chrt", "--rr", "1"].into_iter().chain(own.iter().map(String::as_str));
    let others: Vec<_> = others.iter().map(String::as_str).collect();
    let sibling = Sibling::start(&others);
    let job = traced(&[], &own.collect::<Vec<_>>());
    sibling.end();
    assert_eq!(rows_below(&job, "io_folders", beside.to_str().unwrap()), 0);
    let truth: u64 = (0..SAMPLES).map(|number| number % 251 * EPOCHS).sum();
    assert_eq!(String::from_utf8_lossy(&job.output.stdout).trim(), truth.to_string());
    let found = said(vec![parse(job.json.to_string().as_bytes()).unwrap()]);
    (disk, job, found)
}

#[test]
fn a_loader_of_small_files_is_told_each_of_them_and_one_of_a_packed_file_is_not() {
    tried_again(|| {
        let (disk, job, found) = loads("files");
        let mut agree = Agreement::new();
        let reads = SAMPLES * EPOCHS;
        for op in ["open", "read", "close"] {
            agree.exact(&format!("{op}: calls"), of_op(&job, disk.path(), op, "ops"), reads);
            agree.exact(&format!("{op}: errors"), of_op(&job, disk.path(), op, "errors"), 0);
        }
        let bytes = reads * SAMPLE_BYTES;
        agree.exact("bytes", of_op(&job, disk.path(), "read", "bytes"), bytes);
        let folder = disk.path().join("own/samples");
        let told = |field| of_path(&job, "io_folders", folder.to_str().unwrap(), field);
        agree.exact("files", told("files"), SAMPLES);
        agree.exact("opens of them", told("opens"), reads);
        agree.exact("bytes of them", told("read_bytes"), bytes);
        agree.exact("bytes that they hold", told("size_bytes"), SAMPLES * SAMPLE_BYTES);
        agree.end();
        assert!(found.contains("small_files"), "{found:?}");

        let (disk, job, found) = loads("packed");
        let mut agree = Agreement::new();
        agree.between("packed: opens", of_op(&job, disk.path(), "open", "ops"), 1..=4);
        agree.exact("packed: reads", of_op(&job, disk.path(), "read", "ops"), reads);
        agree.exact("packed: bytes", of_op(&job, disk.path(), "read", "bytes"), bytes);
        agree.end();
        assert!(!found.contains("small_files"), "{found:?}");
    });
}
