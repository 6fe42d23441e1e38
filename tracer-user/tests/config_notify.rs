//! What the service manager hears. Alone in its program, for the way to it is a variable of the
//! environment.

use std::{os::unix::net::UnixDatagram, time::Duration};

use jobtrace::base::notify::Notify;

#[test]
fn the_manager_hears_each_state_and_nobody_minds_its_absence() {
    let deaf = Notify::from_environment();
    deaf.ready("nobody listens");
    assert_eq!(deaf.watchdog_every(), None);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // SAFETY: this program has one test and no other thread that reads the environment.
    unsafe {
        std::env::set_var("NOTIFY_SOCKET", &path);
        std::env::set_var("WATCHDOG_USEC", "30000000");
    }
    let notify = Notify::from_environment();
    assert_eq!(notify.watchdog_every(), Some(Duration::from_secs(15)));
    let hear = || {
        let mut buffer = [0; 512];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    notify.ready("3 jobs");
    assert_eq!(hear(), "READY=1\nSTATUS=3 jobs\n");
    notify.status("job a\nSTOPPING=1");
    assert_eq!(hear(), "STATUS=job a STOPPING=1\n", "no second line from outside");
    notify.alive();
    assert_eq!(hear(), "WATCHDOG=1\n");
    notify.reloading();
    let heard = hear();
    let time = heard.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
    assert!(time.trim().parse::<u64>().unwrap() > 0);
    notify.stopping();
    assert_eq!(hear(), "STOPPING=1\n");
}
