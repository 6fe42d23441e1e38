//! Live ring: the HTML of a really traced command in a real browser: nothing on its console, nothing wider than the
//! window, at any usual width.

use std::{fs, path::Path, process::Command};

use jobtrace_tests::traced::program;

/// Opens the page in frames of these widths and writes how wide it turned out.
const FRAMES: &str = r#"<!DOCTYPE html><title>t</title><body><script>
const widths = [400, 640, 1000, 1400];
let left = widths.length;
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px"; frame.style.height = "900px"; frame.style.border = 0;
  frame.onload = () => {
    const page = frame.contentDocument.documentElement;
    const line = document.createElement("p");
    line.className = "measured";
    line.textContent = `${width}=${page.scrollWidth}; sections=${page.querySelectorAll("section").length}`;
    document.body.append(line);
  };
  frame.src = "page.html"; document.body.append(frame);
}
</script>"#;

fn browse(folder: &Path, file: &str) -> (String, String) {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args([
            "--enable-logging=stderr",
            "--allow-file-access-from-files",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", folder.join(file).display()))
        .output()
        .expect("chromium is installed: `cargo xtask test` sees to it");
    assert!(output.status.success(), "{output:?}");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_page_is_as_wide_as_its_window_and_says_nothing_on_the_console() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let work = "i=0; while [ $i -lt 200 ]; do dd if=/dev/zero of=x bs=4k count=1 oflag=dsync status=none; i=$((i+1)); done";
    let ended = Command::new(program().unwrap())
        .current_dir(dir.path())
        .args(["run", "--quiet", "--name", "stores", "--save"])
        .arg(&runs)
        .args(["--", "sh", "-c", work])
        .status();
    assert!(ended.unwrap().success());
    let page = dir.path().join("page.html");
    let ended = Command::new(program().unwrap())
        .args(["report", "stores", "--html"])
        .arg(&page)
        .arg("--from")
        .arg(&runs)
        .status();
    assert!(ended.unwrap().success());
    assert!(fs::read_to_string(&page).unwrap().contains("<h1>stores "));
    fs::write(dir.path().join("frames.html"), FRAMES).unwrap();
    let (dom, log) = browse(dir.path(), "frames.html");
    for width in [400, 640, 1000, 1400] {
        let measured = format!("{width}={width}; sections=");
        assert_eq!(dom.matches(&measured).count(), 1, "{measured} {dom}\n{log}");
    }
    assert!(!dom.contains("sections=0"), "{dom}");
    let (_, log) = browse(dir.path(), "page.html");
    assert!(!log.contains("CONSOLE"), "{log}");
    // The check would see a message: a page whose script is refused by its own policy has one.
    let loud = fs::read_to_string(&page).unwrap().replace("</main>", "</main><script>1</script>");
    fs::write(dir.path().join("loud.html"), loud).unwrap();
    let (_, log) = browse(dir.path(), "loud.html");
    assert!(log.contains("CONSOLE"), "{log}");
}
