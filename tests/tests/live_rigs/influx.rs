//! InfluxDB: what it stores, what it refuses, what its import takes.

use std::{fs, io::Write};

use flate2::{Compression, write::GzEncoder};
use jobtrace_tests::rig::influx::Influx;

#[test]
fn influx_stores_and_refuses() {
    let influx = Influx::start().unwrap();
    influx.create_db("db").unwrap();
    let lines = b"m,host=a n=1i,x=0.5 1000000001\nm,host=b n=2i 2000000002\n";
    for gzip in [false, true] {
        assert_eq!(influx.write_lp("db", lines, gzip).unwrap().status, 204);
    }
    let rows = influx.query("db", "SELECT n, x FROM m GROUP BY host").unwrap();
    let cells = |key: &str| rows.iter().map(|row| row[key].clone()).collect::<Vec<_>>();
    assert_eq!(cells("host"), ["a", "b"]);
    assert_eq!(cells("time"), [1_000_000_001_u64, 2_000_000_002]);
    assert_eq!(cells("n"), [1, 2]);
    assert_eq!(cells("x")[0], 0.5);
    assert!(cells("x")[1].is_null());
    // One type per field, for ever; the good line of the same body is stored.
    let refused = influx.write_lp("db", b"m,host=a n=1.5 3\nm,host=c n=3i 4\n", false).unwrap();
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("field type conflict"), "{refused:?}");
    assert_eq!(influx.write_lp("db", b"no line protocol\n", false).unwrap().status, 400);
    assert_eq!(influx.query("db", "SELECT sum(n) FROM m").unwrap()[0]["sum"], 6);
    assert!(influx.query("db", "SELECT nonsense").is_err());

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.lp.gz");
    let mut packed = GzEncoder::new(fs::File::create(&file).unwrap(), Compression::fast());
    packed.write_all(b"# DML\n# CONTEXT-DATABASE: db\nimported n=7i 5000000005\n").unwrap();
    packed.finish().unwrap();
    let output = influx.import(&file, true).unwrap();
    assert!(output.status.success(), "{output:?}");
    let rows = influx.query("db", "SELECT n FROM imported").unwrap();
    assert_eq!((&rows[0]["n"], &rows[0]["time"]), (&7.into(), &5_000_000_005_u64.into()));
}
