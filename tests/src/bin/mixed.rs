//! `mixed SECONDS DEVICE FILE`: everything at once for that long: three busy processes for each CPU
//! among them, and beside them fresh memory, pages of DEVICE, direct and buffered I/O on FILE, sleeps,
//! short-lived children, and messages by TCP. Each kind of work repeats a known amount and reports how often.

use std::{
    fs::File,
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::fs::FileExt,
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    account::Account,
    work::{Pages, Work, fork, open_direct, pin, reap, spin},
};

/// Pages touched, of memory and of the device, in a round.
const FRESH: usize = 2000;
/// Bytes of a transfer, and transfers of a round, each way.
const BYTES: usize = 64 << 10;
const TRANSFERS: u64 = 32;
const SLEEP: Duration = Duration::from_millis(5);
const SPIN: Duration = Duration::from_millis(1);
/// Messages of a round, and bytes of each.
const MESSAGES: u64 = 16;
const MESSAGE_BYTES: usize = 1000;
/// First of the shared words that sum up the short-lived children.
const GRANDCHILDREN: usize = 16;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut work = Work::begin();
    let end = Instant::now() + Duration::from_secs(words[0].parse().unwrap());
    let (device, file) = (Path::new(&words[1]), Path::new(&words[2]));
    let cpus = thread::available_parallelism().unwrap().get();
    let hogs = (0..3 * cpus).map(|index| {
        fork(|| {
            pin(index);
            while Instant::now() < end {
                spin(Duration::from_millis(50));
            }
        })
    });
    let mut pids: Vec<i32> = hogs.collect();
    let shared = Pages::shared(1);
    let words = shared.words();
    let connection = connection();
    let kinds: [(&str, &dyn Fn()); 7] = [
        ("fresh", &|| Pages::fresh(FRESH).write()),
        ("file", &|| {
            Pages::of_uncached_file(device).read();
        }),
        ("direct", &|| direct(file)),
        ("buffered", &|| buffered(file)),
        ("sleeps", &|| thread::sleep(SLEEP)),
        ("forks", &|| add(&words[GRANDCHILDREN..], &reap(fork(|| spin(SPIN))).0)),
        ("messages", &|| messages(&connection)),
    ];
    for (index, (_, round)) in kinds.iter().enumerate() {
        pids.push(fork(|| {
            while Instant::now() < end {
                round();
                words[index].fetch_add(1, Relaxed);
            }
        }));
    }
    for pid in pids {
        assert_eq!(work.reap(pid), 0);
    }
    for (index, (name, _)) in kinds.iter().enumerate() {
        work.fact(name, words[index].load(Relaxed));
    }
    work.fact("children", (3 * cpus + kinds.len()) as u64);
    let at = |index: usize| words[GRANDCHILDREN + index].load(Relaxed);
    // Their faults are in the account of the child that made them.
    work.add_children(Account {
        on_cpu_ns: at(0),
        run_delay_ns: at(1),
        voluntary: at(2),
        involuntary: at(3),
        migrations: at(4),
        ..Account::default()
    });
    work.end();
}

/// Adds the account of a grandchild to the shared sums.
fn add(sums: &[AtomicU64], account: &Account) {
    let Account { on_cpu_ns, run_delay_ns, voluntary, involuntary, migrations, .. } = *account;
    let values = [on_cpu_ns, run_delay_ns, voluntary, involuntary, migrations];
    for (sum, value) in sums.iter().zip(values) {
        sum.fetch_add(value, Relaxed);
    }
}

fn direct(path: &Path) {
    let file = open_direct(path);
    let mut buffer = Pages::fresh(BYTES / 4096);
    for index in 0..TRANSFERS {
        file.write_all_at(buffer.bytes(), index * BYTES as u64).unwrap();
        file.read_exact_at(buffer.bytes(), index * BYTES as u64).unwrap();
    }
}

/// Behind the direct transfers, of other bytes each time.
fn buffered(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&[7; BYTES], TRANSFERS * BYTES as u64).unwrap();
    file.sync_data().unwrap();
}

/// Both ends of a connection to ourselves, on which no message waits for the last one's confirmation.
fn connection() -> [TcpStream; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    sender.set_nodelay(true).unwrap();
    [sender, listener.accept().unwrap().0]
}

/// Each is received before the next is sent.
fn messages([sender, receiver]: &[TcpStream; 2]) {
    let (mut sender, mut receiver) = (sender, receiver);
    let mut bytes = [7; MESSAGE_BYTES];
    for _ in 0..MESSAGES {
        assert_eq!(sender.write(&bytes).unwrap(), bytes.len());
        receiver.read_exact(&mut bytes).unwrap();
    }
}
