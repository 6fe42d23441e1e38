//! `pip install` of a package of known size into a folder.

use std::{fs, path::Path, process::Command};

use jobtrace_tests::{
    agree::Agreement,
    rig::{mount::Tmpfs, venv::Environment},
    sibling::Sibling,
};

use crate::{MIB, of_op, of_path, rows_below, traced};

/// Modules of a package, and the bytes of each.
const MODULES: u64 = 60;
const MODULE_BYTES: u64 = 10_000;

/// Makes a wheel with them in `folder`: a package of our own, for which nobody has to be asked.
const WHEEL: &str = "
import base64, hashlib, sys, zipfile
modules, size, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
about = 'parts-1.0.dist-info'
files = {f'parts/m{number}.py': f'x = {number}  #'.ljust(size, '.') for number in range(modules)}
files[about + '/METADATA'] = 'Metadata-Version: 2.1\\nName: parts\\nVersion: 1.0\\n'
files[about + '/WHEEL'] = 'Wheel-Version: 1.0\\nGenerator: a\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'
def row(name, text):
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()
    return f'{name},sha256={digest},{len(text)}\\n'
record = ''.join(row(name, text) for name, text in files.items()) + about + '/RECORD,,\\n'
with zipfile.ZipFile(folder + '/parts-1.0-py3-none-any.whl', 'w') as wheel:
    for name, text in {**files, about + '/RECORD': record}.items():
        wheel.writestr(name, text)
";

/// How many files lie below `folder`, and their bytes.
fn below(folder: &Path) -> [u64; 2] {
    let mut all = [0, 0];
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let of = if entry.file_type().unwrap().is_dir() {
            below(&entry.path())
        } else {
            [1, entry.metadata().unwrap().len()]
        };
        all = [all[0] + of[0], all[1] + of[1]];
    }
    all
}

/// It unpacks the wheel to a folder of a moment, here on another file system, and copies that to where it is asked to.
#[test]
fn pip_install_writes_what_is_there_afterwards() {
    let [home, temporary, wheels] = [256, 64, 8].map(|mib| Tmpfs::mount(mib * MIB).unwrap());
    let path = |folder: &Path| folder.to_str().unwrap().to_owned();
    let environment = Environment::empty(&home.path().join("env"));
    let python = path(&environment.python);
    let numbers = [MODULES, MODULE_BYTES].map(|number| number.to_string());
    let made = Command::new(&python).args(["-c", WHEEL]).args(numbers).arg(wheels.path()).status();
    assert!(made.unwrap().success());
    let wheel = path(&wheels.path().join("parts-1.0-py3-none-any.whl"));
    let install = |target: &str| {
        format!(
            "exec {python} -m pip install --quiet --no-index --no-deps --no-cache-dir --no-input \
             --disable-pip-version-check --target {target} {wheel}"
        )
    };
    let [own, beside] = ["own", "beside"].map(|name| home.path().join(name));
    // What pip itself is made of stays as it is.
    let kept = "PYTHONDONTWRITEBYTECODE=1";
    let temporary_of = format!("TMPDIR={}", path(temporary.path()));
    let again = format!("rm -rf {0}; {1}", beside.display(), install(&path(&beside)));
    let sibling = Sibling::start(&["env", kept, &temporary_of, "sh", "-c", &again]);
    let job = traced(&[], &["env", kept, &temporary_of, "sh", "-c", &install(&path(&own))]);
    sibling.end();

    let [files, bytes] = below(&own);
    let sources = MODULES * MODULE_BYTES;
    let mut agree = Agreement::new();
    // Each module, what is compiled of it, and what tells of the package.
    agree.between("files", files, 2 * MODULES + 3..=2 * MODULES + 8);
    agree.between("bytes", bytes, sources + 100 * MODULES..=2 * sources);
    let modules = path(&own.join("parts"));
    let copied = |field| {
        ["copy_file_range", "sendfile"]
            .iter()
            .map(|op| of_op(&job, temporary.path(), op, field))
            .sum::<u64>()
    };
    agree.exact("copied from there", copied("bytes"), bytes);
    agree.between("calls", copied("ops"), files..=2 * files);
    // The list of files is first the archive's own, which is replaced.
    let record = fs::metadata(own.join("parts-1.0.dist-info/RECORD")).unwrap().len();
    let written = of_op(&job, temporary.path(), "write", "bytes");
    agree.between("written there", written, bytes..=bytes + record);
    agree.exact("written at home, not copied", of_op(&job, home.path(), "write", "bytes"), 0);
    let told = |field| of_path(&job, "io_folders", &modules, field);
    agree.exact("modules", told("files"), MODULES);
    agree.exact("their opens", told("opens"), MODULES);
    agree.exact("of the sibling", rows_below(&job, "io_folders", &path(&beside)), 0);
    let archive = fs::metadata(&wheel).unwrap().len();
    let read = of_op(&job, wheels.path(), "read", "bytes");
    agree.between("read of the archive", read, archive..=4 * archive);
    agree.end();
}
