//! Paths of programs, libraries and Python modules as jobs choose them, names of what is installed, lists of it, a site's
//! file, and the texts in heads and lines. Whatever comes in, what is told is a short plain word and no path.

use std::{collections::BTreeMap, path::Path};

use jobtrace::{
    census::Site,
    fuzzing,
    model::{
        seen::{Seen, SeenLibrary, SeenPackage, SeenProgram},
        software::{LONGEST_NAME, Software},
        software_text::{self, LONGEST_BYTES, Named},
    },
    report::software::{parse_installed, unused},
};

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines: Vec<&str> = text.lines().collect();
    let software = fuzzing::software(&seen(&lines), &lines, &text);
    check(&software);
    let mut twice = software.clone();
    twice.merge(&software);
    assert_eq!(twice.packages, software.packages);
    for told in [
        software.programs_text(),
        software.libraries_text(),
        software.packages_text(),
        software.stacks_text(),
    ] {
        again(&told);
    }
    again(&text);
    let _ = Site::parse(&text, Path::new("software.toml"));
    for line in &lines {
        if let Some((name, version)) = parse_installed(line) {
            assert!(!name.is_empty() && version != Some(""), "{line:?}");
        }
        if let Some(family) = fuzzing::soname_family(line) {
            assert!(!family.is_empty() && !family.contains('/'), "{line:?}");
        }
    }
    let (unused, installed) = unused(&text, &[]);
    assert_eq!(unused.len(), installed, "nothing was loaded");
}

/// Each line as a program, as a library that the line before mapped, and as a module in its folder.
fn seen(lines: &[&str]) -> Seen {
    let program = |line: &&str| SeenProgram { path: (*line).into(), executions: 1 };
    let before = |at: usize| lines[at.saturating_sub(1)].to_owned();
    let library = |(at, line): (usize, &&str)| SeenLibrary { path: (*line).into(), by: before(at) };
    let package = |(at, line): (usize, &&str)| {
        let (site, name) = line.rsplit_once('/')?;
        let interpreter = before(at);
        Some(SeenPackage { site: site.into(), site_inode: None, name: name.into(), interpreter })
    };
    Seen {
        programs: lines.iter().map(program).collect(),
        libraries: lines.iter().enumerate().map(library).collect(),
        packages: lines.iter().enumerate().filter_map(package).collect(),
        ..Seen::default()
    }
}

fn check(software: &Software) {
    let add = |texts: &[Option<&str>]| {
        for word in texts.iter().flatten() {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
            assert!(!word.is_empty() && word.len() <= LONGEST_NAME, "{word:?}");
            assert!(word.bytes().all(is_plain), "{word:?}");
        }
    };
    for of in &software.programs {
        add(&[Some(&of.name), of.version.as_deref()]);
    }
    for of in &software.libraries {
        add(&[Some(&of.name), of.version.as_deref()]);
    }
    for of in &software.packages {
        let texts = [&of.distribution, &of.version, &of.python].map(|text| text.as_deref());
        add(&texts);
        add(&[Some(&of.name)]);
    }
    for of in &software.stacks {
        add(&[&of.name, &of.version, &of.toolchain].map(|text| text.as_deref()));
        add(&[Some(&of.kind)]);
    }
    let json = serde_json::to_string(software).expect("JSON");
    assert_eq!(&serde_json::from_str::<Software>(&json).expect("read"), software);
}

/// What a text says is written as the same, in no more than its bound, and none is lost.
fn again(text: &str) {
    let read = software_text::parse(text);
    let mut once = BTreeMap::<Named, u64>::new();
    read.named.iter().for_each(|named| *once.entry(*named).or_default() += 1);
    let written = software_text::text(read.named.iter().copied(), read.others);
    assert!(written.len() <= LONGEST_BYTES + 32, "{}", written.len());
    let back = software_text::parse(&written);
    let count = back.named.len() as u64;
    assert_eq!(count.saturating_add(back.others), (once.len() as u64).saturating_add(read.others));
}
