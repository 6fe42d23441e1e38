//! Real packages from PyPI: each name that can be imported, its distribution and version against what Python itself says
//! it has, each library against what the process has mapped.

use std::collections::{BTreeMap, BTreeSet};

use jobtrace_tests::traced::Traced;

use crate::{
    made::{forget_files, packages},
    maps::{TELL, lines},
    real::{Environment, IMPORTS, environment},
    watch::{libraries, watched},
};

/// Names that the imports bring at least.
const NAMES: usize = 44;

/// Prints each topmost name in `sys.modules` that has its file or folder in the folder of modules, with what Python says
/// who brought it. Compiled modules within packages enter themselves by a name of their own too, which nobody imports.
const NAMED: &str = r#"
import json, sys, sysconfig
site = sysconfig.get_paths()["purelib"] + "/"
def entries(module):
    places = list(getattr(module, "__path__", []))
    places.append(getattr(getattr(module, "__spec__", None), "origin", None))
    below = [str(place)[len(site):] for place in places if str(place).startswith(site)]
    return {place.split("/")[0].split(".")[0] for place in below}
modules = [(name.split(".")[0], module) for name, module in list(sys.modules.items())]
names = sorted({name for name, module in modules if name in entries(module)})
import re
from importlib import metadata
brought = metadata.packages_distributions()
def distributions(name):
    return [[re.sub("[-_.]+", "-", of).lower(), metadata.version(of)] for of in brought.get(name, [])]
print(json.dumps({name: distributions(name) for name in names}))
"#;

/// Distributions and versions by name.
type Names = BTreeMap<String, Vec<[String; 2]>>;

/// What the environment's Python has, and what is told of it.
fn named(environment: &Environment) -> (Names, BTreeSet<[String; 3]>) {
    let script = format!("{IMPORTS}{NAMED}");
    let job = Traced::run(&["--software"], &environment.command(&script));
    assert!(job.output.status.success(), "{:?}", job.output);
    let mut own: Names = serde_json::from_slice(&job.output.stdout).expect("names");
    // The environment itself has it executed at each start, where it comes with one (before 3.12).
    own.remove("_distutils_hack");
    let software = &job.json["software"];
    for none in ["lost", "unknown_packages", "own_modules"] {
        assert!(software[none].is_null() || software[none] == 0, "{none}: {software:#}");
    }
    (own, packages(software))
}

#[test]
fn every_package_that_python_says_it_has_is_told_warm_and_cold() {
    let environment = environment();
    for is_cold in [false, true] {
        if is_cold {
            forget_files();
        }
        let (own, told) = named(environment);
        assert!(own.len() >= NAMES, "{} names: {own:?}", own.len());
        let names: BTreeSet<_> = told.iter().map(|[name, ..]| name).collect();
        assert_eq!(names, own.keys().collect(), "cold: {is_cold}");
        for [name, distribution, version] in &told {
            let is_its = own[name].contains(&[distribution.clone(), version.clone()]);
            assert!(is_its, "{name} is of {:?}, not {distribution} {version}", own[name]);
        }
        eprintln!("{} of {} names, cold: {is_cold}", told.len(), own.len());
    }
}

#[test]
fn every_library_of_real_packages_that_a_process_has_mapped_is_told_warm_and_cold() {
    let environment = environment();
    let script = format!("{IMPORTS}{TELL}");
    for is_cold in [false, true] {
        if is_cold {
            forget_files();
        }
        let (seen, text) = watched("census-real", &environment.command(&script));
        let own = lines(&text, &environment.program);
        assert!(own.len() > 100, "{own:?}");
        assert_eq!(libraries(&seen, &environment.program), own, "cold: {is_cold}");
        eprintln!("{} libraries, cold: {is_cold}", own.len());
    }
}
