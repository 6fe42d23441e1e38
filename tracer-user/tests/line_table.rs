//! Points and the very bytes they become. Most rows are cases of InfluxData's line-protocol corpus
//! (encode), in the form every consumer reads alike.

use influxdb_line_protocol::parse_lines;
use jobtrace::{
    lines::line::encode,
    model::{
        group::{Group, Value},
        hist::Hist,
        hist_points::hist_points,
        info::{Exit, JobInfo},
        job::{Job, JobStats},
        point::{
            FieldValue::{self, Float, Integer, Text},
            Origin, Point,
        },
        points::{info_point, job_points},
        tables,
    },
};
use tracer_ebpf::table::Kind;

fn check(measurement: &str, tags: &[(&str, &str)], fields: &[(&str, FieldValue)], expected: &str) {
    let tags = tags.iter().map(|(k, v)| ((*k).to_owned().into(), (*v).to_owned())).collect();
    let fields = fields.iter().map(|(k, v)| ((*k).to_owned().into(), v.clone())).collect();
    let mut out = Vec::new();
    encode(
        &Point { measurement: measurement.to_owned().into(), tags, fields, time_ns: 0 },
        &mut out,
    );
    let expected = if expected.is_empty() { String::new() } else { format!("{expected} 0\n") };
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn measurements() {
    for (name, expected) in [
        ("cpu", "cpu"),
        ("cpu load", r"cpu\ load"),
        ("cpu,main", r"cpu\,main"),
        ("foo,bar", r"foo\,bar"),
        ("cpu=load", "cpu=load"),
        ("\"cpu\"", "\"cpu\""),
        ("c\\pu", r"c\pu"),
        ("cpu\\", "cpu_"),
        ("cpu\\,load", r"cpu_\,load"),
        ("cpu\nload", "cpu_load"),
        ("#cpu", "x_#cpu"),
        ("_internal", "x__internal"),
        ("time", "x_time"),
        ("Größe", "Größe"),
    ] {
        check(name, &[], &[("v", Integer(1))], &format!("{expected} v=1i"));
    }
    check("", &[], &[("v", Integer(1))], "");
}

#[test]
fn tag_keys() {
    for (key, expected) in [
        (" ", r"\ "),
        ("region zone", r"region\ zone"),
        ("region,zone", r"region\,zone"),
        ("equals=foo", r"equals\=foo"),
        ("reg\\=ion", r"reg_\=ion"),
        ("\"host\"", "\"host\""),
        ("A FOO", r"A\ FOO"),
        ("a\tb", "a_b"),
        ("time", "x_time"),
        ("_field", "x__field"),
        ("\nfield", "x__field"),
        ("Time", "Time"),
    ] {
        check("cpu", &[(key, "east")], &[("v", Integer(1))], &format!("cpu,{expected}=east v=1i"));
    }
    check("cpu", &[("", "east")], &[("v", Integer(1))], "cpu v=1i");
}

#[test]
fn tag_values() {
    for (value, expected) in [
        ("east west", r"east\ west"),
        ("east,west", r"east\,west"),
        ("tag=value", r"tag\=value"),
        ("\"serverA\"", "\"serverA\""),
        ("\"a", "\"a"),
        ("eas\\t", r"eas\t"),
        // What the corpus escapes with two backslashes is read differently by Telegraf.
        ("\\ east", r"_\ east"),
        ("eas\\ t", r"eas_\ t"),
        ("east\\ ", r"east_\ "),
        ("\\,,=east", r"_\,\,\=east"),
        ("C:\\", "C:_"),
        ("a\\\\b", r"a_\b"),
        ("a\r\nb\u{85}", "a__b_"),
        ("time", "time"),
        ("_x", "_x"),
    ] {
        let expected = format!("cpu,regions={expected} v=1i");
        check("cpu", &[("regions", value)], &[("v", Integer(1))], &expected);
    }
    check("cpu", &[("something", "")], &[("v", Integer(1))], "cpu v=1i");
    let (long, cut) = ("é".repeat(200), "é".repeat(128));
    check("cpu", &[("t", &long)], &[("v", Integer(1))], &format!("cpu,t={cut} v=1i"));
    let (long, cut) = (format!("x{long}"), format!("x{}", "é".repeat(127)));
    check("cpu", &[("t", &long)], &[("v", Integer(1))], &format!("cpu,t={cut} v=1i"));
}

#[test]
fn tags_are_sorted_by_their_own_bytes_and_unique() {
    let v = [("v", Integer(1))];
    check("m", &[("region", "us"), ("host", "a")], &v, "m,host=a,region=us v=1i");
    // Sorted escaped, the backslash would come after the P.
    check(
        "test",
        &[("APPLE", "orange"), ("A FOO", "bar")],
        &v,
        r"test,A\ FOO=bar,APPLE=orange v=1i",
    );
    check("m", &[("a", "first"), ("a", "second")], &v, "m,a=first v=1i");
    check("m", &[("a", ""), ("a", "second")], &v, "m,a=second v=1i");
    check("m", &[("a\t", "first"), ("a\n", "second")], &v, "m,a_=first v=1i");
    check("m", &[("v", "tag"), ("w", "1")], &v, "");
    check("m", &[("v", "tag")], &[("v", Integer(1)), ("w", Integer(2))], "m,v=tag w=2i");
}

#[test]
fn field_keys() {
    for (key, expected) in [
        ("value ms", r"value\ ms"),
        ("value,ms", r"value\,ms"),
        ("name=bar", r"name\=bar"),
        ("\\a", r"\a"),
        ("a\\", "a_"),
        ("\"a\"", "\"a\""),
        ("time", "x_time"),
        ("_measurement", "x__measurement"),
        ("a\nb", "a_b"),
    ] {
        check("cpu", &[], &[(key, Integer(1))], &format!("cpu {expected}=1i"));
    }
    check("cpu", &[], &[("", Integer(1)), ("b", Integer(2))], "cpu b=2i");
    check("cpu", &[], &[("b", Integer(1)), ("a", Integer(2)), ("b", Integer(3))], "cpu b=1i,a=2i");
    check("cpu", &[], &[], "");
}

#[test]
fn integers() {
    for (number, expected) in [
        (0, "0i"),
        (1, "1i"),
        (42, "42i"),
        (6_632_243, "6632243i"),
        (4_294_967_295, "4294967295i"),
        (i64::MAX as u64, "9223372036854775807i"),
        (i64::MAX as u64 + 1, "9223372036854775807i"),
        (u64::MAX, "9223372036854775807i"),
    ] {
        check("cpu", &[], &[("value", Integer(number))], &format!("cpu value={expected}"));
    }
}

#[test]
fn floats() {
    for (number, expected) in [
        (1.0, "1.0"),
        (42.0, "42.0"),
        (-0.64, "-0.64"),
        (6_632_243.0, "6632243.0"),
        (12.123, "12.123"),
        (-0.0, "-0.0"),
        (1e16, "10000000000000000.0"),
        (1e-7, "0.0000001"),
    ] {
        check("cpu", &[], &[("value", Float(number))], &format!("cpu value={expected}"));
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        check("cpu", &[], &[("value", Float(number))], "");
        check("cpu", &[], &[("value", Float(number)), ("b", Integer(1))], "cpu b=1i");
    }
}

#[test]
fn strings() {
    for (text, expected) in [
        ("", r#""""#),
        ("abcdefg", r#""abcdefg""#),
        ("1,0", r#""1,0""#),
        ("foo bar=baz", r#""foo bar=baz""#),
        ("one double quote \" .", r#""one double quote \" .""#),
        ("backslash \\ then quote \" .", r#""backslash \\ then quote \" .""#),
        ("quote \" then backslash \\ .", r#""quote \" then backslash \\ .""#),
        ("test\\", r#""test\\""#),
        ("test\\\"", r#""test\\\"""#),
        ("{Hello\"{\\,}\" World}", r#""{Hello\"{\\,}\" World}""#),
        ("a\nb\r\tc\0", r#""a b  c ""#),
        ("naïve 😀", r#""naïve 😀""#),
    ] {
        check("t", &[], &[("s", Text(text.into()))], &format!("t s={expected}"));
    }
}

#[test]
fn times() {
    for (time_ns, expected) in [
        (0, "0"),
        (1, "1"),
        (1_000_000_000, "1000000000"),
        (231_845_000_000_000, "231845000000000"),
        (1_603_976_386_427_072_239, "1603976386427072239"),
        // InfluxDB's latest.
        (9_223_372_036_854_775_806, "9223372036854775806"),
        (i64::MAX as u64, "9223372036854775806"),
        (u64::MAX, "9223372036854775806"),
    ] {
        let fields = vec![("v".into(), Integer(1))];
        let mut out = b"before\n".to_vec();
        let point = Point { measurement: "m".into(), tags: vec![], fields, time_ns };
        encode(&point, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), format!("before\nm v=1i {expected}\n"));
    }
}

#[test]
fn every_field_of_every_table_has_its_place_on_the_line() {
    let origin = Origin { cluster: "c".into(), host: "n1".into() };
    let job =
        Job { job: "4242".into(), manager: "slurm".into(), user: "ada".into(), ..Job::default() };
    for table in tables::ALL {
        let tags = table.tags.iter().map(|tag| format!("the {tag}")).collect();
        let mut group = Group::unknown(table, tags);
        let mut expected = 0;
        for (field, value) in table.fields.iter().zip(&mut group.values) {
            if field.kind == Kind::Histogram {
                *value = Some(Value::Histogram(Hist::from_buckets(70, 70, [(1, 1)])));
                expected += 8;
            } else {
                *value = Some(Value::Number(1500));
                expected += 1;
            }
        }
        let stats = JobStats { job: job.clone(), groups: vec![group] };
        let mut out = Vec::new();
        job_points(&origin, &stats, 7).iter().for_each(|point| encode(point, &mut out));
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = parse_lines(&text).collect::<Result<_, _>>().unwrap();
        assert_eq!(lines.len(), 1, "{}", table.name);
        assert_eq!(lines[0].series.measurement.as_str(), table.name);
        assert_eq!(lines[0].field_set.len(), expected, "{text}");
        let tags = lines[0].series.tag_set.as_ref().map_or(0, |tags| tags.len());
        assert_eq!(tags, 5 + table.tags.len(), "{text}");
    }
}

#[test]
fn job_info_and_job_hist_are_lines() {
    let origin = Origin { cluster: String::new(), host: "n1".into() };
    let job = Job { job: "r1".into(), manager: "run".into(), user: "ada".into(), ..Job::default() };
    let command = "sh -c 'echo \"a b\"'".to_owned();
    let info = JobInfo { name: "sh".into(), uid: 7, command, start_wall_ns: 5, user: "ada".into() };
    let end = Some((9, Exit { code: None, signal: Some(9) }));
    let mut out = Vec::new();
    encode(&info_point(&origin, &job, &info, end, Some(4), 9), &mut out);
    let mut sched = Group::unknown(&tables::SCHED, vec![]);
    sched.set_hist(tables::Sched::sleep_ns, Hist::from_buckets(70, 70, [(1, 3)]));
    let stats = JobStats { job, groups: vec![sched] };
    hist_points(&origin, &stats, 9).iter().for_each(|point| encode(point, &mut out));
    let expected = concat!(
        r#"job_info,host=n1,job=r1,manager=run,user=ada name="sh",uid=7i,"#,
        r#"command="sh -c 'echo \"a b\"'",start=5i,end=9i,elapsed_ns=4i,exit=137i 9"#,
        "\njob_hist,host=n1,job=r1,le=127,manager=run,metric=sched.sleep_ns,user=ada n=3i 9\n",
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
