//! Live ring: the HTML of reports in a real browser: that of a really traced command, and of jobs made to be hard to show.
//! Nothing on the console, nothing wider than the window, no head of a table broken within a word, nothing that axe finds; light, dark and as it is printed.

use std::{fs, path::Path, process::Command};

use jobtrace_tests::{pages, rig::scripts::axe, traced::program};
use xtask::browser::{Scheme, chromium};

const WIDTHS: [u32; 4] = [400, 640, 1000, 1400];
/// axe has rules for all kinds of content; those that speak of a report's are more than this.
const LEAST_RULES: u32 = 15;

/// Opens a page and gives what it has become, and the browser's log.
fn browse(folder: &Path, file: &str, scheme: Scheme) -> (String, String) {
    let mut command = chromium(folder, &folder.join(file), scheme);
    let output = command
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .output()
        .expect("chromium is installed: `cargo xtask test` sees to it");
    assert!(output.status.success(), "{output:?}");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// What the frames wrote of `name` at `width`.
fn told<'a>(dom: &'a str, name: &str, width: u32) -> &'a str {
    let begin = format!("<p>{name} {width}: ");
    let (_, rest) = dom.split_once(&begin).unwrap_or_else(|| panic!("no {begin} in {dom}"));
    rest.split_once(";</p>").unwrap().0
}

/// Lets axe into the page, which refuses scripts.
fn axed(page: &str) -> String {
    let policy = page.find("<meta http-equiv").unwrap();
    let end = policy + page[policy..].find('>').unwrap() + 1;
    let script = "<script src=\"axe.min.js\"></script></body>";
    format!("{}{}", &page[..policy], page[end..].replace("</body>", script))
}

/// What axe finds in `page`, by width: checked in a folder of its own.
fn findings(page: &str, scheme: Scheme) -> Vec<(u32, String)> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::copy(axe().unwrap(), path("axe.min.js")).unwrap();
    fs::write(path("frames.html"), include_str!("../page/frames.html")).unwrap();
    fs::write(path("page.html"), page).unwrap();
    fs::write(path("axed.html"), axed(page)).unwrap();
    let (dom, log) = browse(folder.path(), "frames.html", scheme);
    assert!(!log.contains("CONSOLE"), "{log}");
    WIDTHS
        .map(|width| {
            let wide = told(&dom, "wide", width);
            assert!(wide.starts_with(&format!("{width} with ")), "{width}: {wide}");
            assert!(!wide.contains("with 0 sections"), "{wide}");
            let broken = told(&dom, "broken", width);
            assert!(broken.starts_with("0 of "), "{width}: {broken} have broken words");
            let (rules, found) = told(&dom, "axe", width).split_once(" rules hold, ").unwrap();
            assert!(rules.parse::<u32>().unwrap() >= LEAST_RULES, "{rules} rules");
            (width, found.to_owned())
        })
        .into()
}

/// Nothing is to be found in any look.
fn assert_clean(name: &str, page: &str) {
    assert!(page.len() < 300_000, "{name}: {} bytes", page.len());
    let printed = page.replace("@media print", "@media all");
    assert!(printed != page);
    for (look, page, scheme) in [
        ("light", page, Scheme::Light),
        ("dark", page, Scheme::Dark),
        ("print", &*printed, Scheme::Light),
    ] {
        for (width, found) in findings(page, scheme) {
            assert_eq!(found, "0 findings ", "{name}, {look}, {width} px");
        }
    }
}

/// The page of a command that was really traced.
fn traced(folder: &Path, name: &str, work: &str) -> String {
    let runs = folder.join("runs");
    let ended = Command::new(program().unwrap())
        .current_dir(folder)
        .args(["run", "--quiet", "--name", name, "--save"])
        .arg(&runs)
        .args(["--", "sh", "-c", work])
        .status();
    assert!(ended.unwrap().success());
    let page = folder.join("page.html");
    let ended = Command::new(program().unwrap())
        .args(["report", name, "--html"])
        .arg(&page)
        .arg("--from")
        .arg(&runs)
        .status();
    assert!(ended.unwrap().success());
    fs::read_to_string(&page).unwrap()
}

#[test]
fn the_page_of_a_traced_command_is_clean_and_says_nothing_on_the_console() {
    let dir = tempfile::tempdir().unwrap();
    let work = "i=0; while [ $i -lt 200 ]; do dd if=/dev/zero of=x bs=4k count=1 oflag=dsync status=none; i=$((i+1)); done";
    let page = traced(dir.path(), "stores", work);
    assert!(page.contains("<h1>stores "));
    assert_clean("stores", &page);
    let (_, log) = browse(dir.path(), "page.html", Scheme::Light);
    assert!(!log.contains("CONSOLE"), "{log}");
    // The checks would see something: a page whose script is refused by its own policy has a message, and one whose
    // drawings have no names has findings.
    let loud = page.replace("</main>", "</main><script>1</script>");
    fs::write(dir.path().join("loud.html"), loud).unwrap();
    let (_, log) = browse(dir.path(), "loud.html", Scheme::Light);
    assert!(log.contains("CONSOLE"), "{log}");
    let pale = page.replace("--faint: #5b626b", "--faint: #c5c9ce");
    assert!(pale != page);
    for (width, found) in findings(&pale, Scheme::Light) {
        assert!(found.contains("color-contrast"), "{width}: {found}");
    }
}

#[test]
fn pages_of_jobs_that_are_hard_to_show_are_clean() {
    let dir = tempfile::tempdir().unwrap();
    let short = traced(dir.path(), "two seconds", "sleep 2");
    assert_clean("a job of two seconds", &short);
    for (name, page) in pages::hard() {
        assert_clean(name, &page);
    }
}
