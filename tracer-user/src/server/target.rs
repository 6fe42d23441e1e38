//! Where lines go and come from: the interface's address and how it wants to be asked.
//!
//! Pure. Refuses an address that carries a password.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{INFLUX, OptionNames, PUSH};

/// Interfaces that take line protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// InfluxDB 1.x: /write
    V1,
    /// InfluxDB 2.x: /api/v2/write
    V2,
    /// InfluxDB 3.x: /api/v3/write_lp
    V3,
    /// VictoriaMetrics: /write
    Victoria,
}

/// The names that tell one database from another in a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// v1, v3, and VictoriaMetrics, which makes it a tag `db`.
    pub database: Option<String>,
    /// v1.
    pub retention_policy: Option<String>,
    /// v2.
    pub org: Option<String>,
    /// v2.
    pub bucket: Option<String>,
}

/// Database of v1 and v3 where none is named: the one that the files name.
const DATABASE: &str = "jobtrace";

/// The interface that `place` speaks of, where nobody named one.
pub fn guess(place: &Place) -> Api {
    if place.org.is_some() || place.bucket.is_some() { Api::V2 } else { Api::V1 }
}

/// The address to post lines to, time stamps in nanoseconds.
///
/// # Errors
/// What is wrong with `url` or missing in `place`, and the cure.
pub fn write_url(url: &str, api: Api, place: &Place) -> Result<String, String> {
    let base = check(url, &PUSH)?;
    let Place { database, retention_policy, org, bucket } = place;
    let unfit = |given: bool, option: &str| {
        let why = || format!("--{option} does not apply to --api {}: leave it out", name(api));
        if given { Err(why()) } else { Ok(()) }
    };
    let need = |given: &Option<String>, option: &str| match given {
        Some(given) => Ok(given.clone()),
        None => {
            Err(format!("--api v2 needs --{option}: the name that `influx {option} list` shows"))
        }
    };
    if api == Api::V2 {
        unfit(database.is_some(), "database")?;
    } else {
        unfit(org.is_some(), "org")?;
        unfit(bucket.is_some(), "bucket")?;
    }
    if api != Api::V1 {
        unfit(retention_policy.is_some(), "retention-policy")?;
    }
    let named = database.clone().unwrap_or_else(|| DATABASE.into());
    let (path, query) = match api {
        Api::V1 => {
            let mut query = vec![("db", named)];
            query.extend(retention_policy.clone().map(|name| ("rp", name)));
            query.push(("precision", "ns".into()));
            ("/write", query)
        }
        Api::V2 => {
            let query = vec![
                ("org", need(org, "org")?),
                ("bucket", need(bucket, "bucket")?),
                ("precision", "ns".into()),
            ];
            ("/api/v2/write", query)
        }
        Api::V3 => ("/api/v3/write_lp", vec![("db", named), ("precision", "nanosecond".into())]),
        Api::Victoria => {
            let mut query: Vec<_> = database.clone().map(|name| ("db", name)).into_iter().collect();
            query.push(("precision", "ns".into()));
            ("/write", query)
        }
    };
    Ok(format!("{base}{path}?{}", joined(&query)))
}

/// The address to ask by InfluxQL, which InfluxDB 2.x answers of a bucket as of a database: for its answer in pieces of
/// `rows` rows, time stamps in nanoseconds.
///
/// # Errors
/// As [`write_url`].
pub fn query_url(url: &str, place: &Place, rows: u32) -> Result<String, String> {
    let base = check(url, &INFLUX)?;
    let Place { database, retention_policy, org, bucket } = place;
    let named = bucket.clone().or(database.clone()).unwrap_or_else(|| DATABASE.into());
    let mut query = vec![("db", named)];
    query.extend(retention_policy.clone().map(|name| ("rp", name)));
    query.extend(org.clone().map(|name| ("org", name)));
    query.extend(["epoch", "chunked", "chunk_size"].into_iter().zip([
        "ns".to_owned(),
        "true".to_owned(),
        rows.to_string(),
    ]));
    Ok(format!("{base}/query?{}", joined(&query)))
}

/// A query of keys and values.
fn joined(query: &[(&str, String)]) -> String {
    let pairs: Vec<_> =
        query.iter().map(|(key, value)| format!("{key}={}", escape(value))).collect();
    pairs.join("&")
}

/// `url` without a slash at its end.
fn check<'a>(url: &'a str, options: &OptionNames) -> Result<&'a str, String> {
    let prefix = options.prefix;
    let example = "write it as in https://influx.example.org:8086";
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return Err(format!(
            "the URL {url:?} begins neither with http:// nor with https://; {example}"
        ));
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    if host.contains('@') {
        // Not quoted: it goes to logs.
        return Err(format!(
            "the URL contains a user name: use {prefix}user, and {prefix}password-file for the password"
        ));
    }
    if host.is_empty() || host.starts_with(':') {
        return Err(format!("the URL {url:?} names no host; {example}"));
    }
    // The parser takes a port that is none for no port, and 80 would be asked.
    let port = host.rsplit(']').next().and_then(|after| after.split_once(':'));
    if let Some((_, port)) = port
        && !port.parse::<u16>().is_ok_and(|port| port != 0)
    {
        return Err(format!("the URL {url:?}: port {port:?} is not a number from 1 to 65535"));
    }
    if rest.contains(['?', '#']) {
        return Err(format!(
            "the URL {url:?} has a query: use {prefix}database, {prefix}org and {prefix}bucket instead"
        ));
    }
    let base = url.trim_end_matches('/');
    for path in ["/query", "/write", "/api/v2/write", "/api/v3/write_lp"] {
        if let Some(server) = base.strip_suffix(path).filter(|server| !server.ends_with("/api/v2"))
        {
            return Err(format!(
                "the URL {url:?} includes the path, which is added automatically: give {server}"
            ));
        }
    }
    match ureq::http::Uri::try_from(base) {
        Ok(_) => Ok(base),
        Err(error) => Err(format!("{url:?} is not a URL: {error}; {example}")),
    }
}

fn name(api: Api) -> &'static str {
    match api {
        Api::V1 => "v1",
        Api::V2 => "v2",
        Api::V3 => "v3",
        Api::Victoria => "victoria",
    }
}

/// `text` as a query's value.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(byte.into());
        } else {
            escaped += &format!("%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(database: &str, org: &str, bucket: &str) -> Place {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Place {
            database: given(database),
            org: given(org),
            bucket: given(bucket),
            retention_policy: None,
        }
    }

    #[test]
    fn each_interface_has_its_address() {
        let policy = Place { retention_policy: Some("a year".into()), ..place("x", "", "") };
        for (url, api, place, expected) in [
            (
                "http://h:8086",
                Api::V1,
                place("", "", ""),
                "http://h:8086/write?db=jobtrace&precision=ns",
            ),
            (
                "http://h/",
                Api::V1,
                place("a b&c", "", ""),
                "http://h/write?db=a%20b%26c&precision=ns",
            ),
            (
                "https://h/influx",
                Api::V1,
                policy,
                "https://h/influx/write?db=x&rp=a%20year&precision=ns",
            ),
            (
                "https://h",
                Api::V2,
                place("", "hpc", "jobs"),
                "https://h/api/v2/write?org=hpc&bucket=jobs&precision=ns",
            ),
            (
                "https://[::1]:8181",
                Api::V3,
                place("", "", ""),
                "https://[::1]:8181/api/v3/write_lp?db=jobtrace&precision=nanosecond",
            ),
            ("http://h:8428", Api::Victoria, place("", "", ""), "http://h:8428/write?precision=ns"),
            ("http://h", Api::Victoria, place("x", "", ""), "http://h/write?db=x&precision=ns"),
        ] {
            assert_eq!(write_url(url, api, &place), Ok(expected.into()));
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_cure() {
        for (url, api, place, word) in [
            ("h:8086", Api::V1, place("", "", ""), "https://influx.example.org:8086"),
            ("", Api::V1, place("", "", ""), "begins neither"),
            ("http://", Api::V1, place("", "", ""), "names no host"),
            ("http://:80", Api::V1, place("", "", ""), "names no host"),
            ("http://h:99999", Api::V1, place("", "", ""), "port \"99999\" is not a number"),
            ("http://[::1]:0/x", Api::V1, place("", "", ""), "port \"0\" is not a number"),
            ("http://h:", Api::V1, place("", "", ""), "port \"\" is not a number"),
            ("http://h ost", Api::V1, place("", "", ""), "is not a URL"),
            ("http://h/write?db=x", Api::V1, place("", "", ""), "--database"),
            ("http://h:1/write", Api::V1, place("", "", ""), "give http://h:1"),
            ("http://h/api/v2/write", Api::V2, place("", "a", "b"), "added automatically"),
            ("http://h", Api::V2, place("", "", "b"), "needs --org"),
            ("http://h", Api::V2, place("", "a", ""), "needs --bucket"),
            ("http://h", Api::V2, place("x", "a", "b"), "--database does not apply to --api v2"),
            ("http://h", Api::V3, place("", "", "b"), "--bucket does not apply to --api v3"),
        ] {
            let error = write_url(url, api, &place).unwrap_err();
            assert!(error.contains(word), "{url}: {error}");
        }
        let secret = write_url("http://ada:pass@h", Api::V1, &Place::default()).unwrap_err();
        assert!(!secret.contains("pass@") && secret.contains("--password-file"), "{secret}");
    }

    #[test]
    fn a_bucket_is_asked_as_a_database() {
        let asked = |place: &Place| query_url("https://h/influx/", place, 500).unwrap();
        let rest = "&epoch=ns&chunked=true&chunk_size=500";
        assert_eq!(asked(&place("", "", "")), format!("https://h/influx/query?db=jobtrace{rest}"));
        let named = Place { retention_policy: Some("a year".into()), ..place("x", "", "") };
        assert_eq!(asked(&named), format!("https://h/influx/query?db=x&rp=a%20year{rest}"));
        let bucket = asked(&place("", "hpc", "jobs"));
        assert_eq!(bucket, format!("https://h/influx/query?db=jobs&org=hpc{rest}"));
        let wrong = query_url("http://ada@h", &Place::default(), 1).unwrap_err();
        assert!(wrong.contains("--influx-password-file"), "{wrong}");
    }

    #[test]
    fn the_interface_follows_from_what_is_given() {
        assert_eq!(guess(&place("", "", "")), Api::V1);
        assert_eq!(guess(&place("x", "", "")), Api::V1);
        assert_eq!(guess(&place("", "a", "b")), Api::V2);
    }
}
