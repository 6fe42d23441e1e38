//! Parts of a document that chores write: from `<!-- NAME -->` to `<!-- /NAME -->`. What stands around
//! them is written by hand and stays.

use anyhow::{Context, Result, bail};
use std::fs;
use xtask::root;

use crate::process::say;

/// Puts `text` in the place of section `name` of `document`, a path below the workspace's root.
///
/// # Errors
/// When the document has no such section, or cannot be written.
pub fn write(document: &str, name: &str, text: &str) -> Result<()> {
    let path = root().join(document);
    let old = fs::read_to_string(&path).with_context(|| format!("read {document}"))?;
    let new = replaced(&old, name, text).with_context(|| format!("write to {document}"))?;
    fs::write(&path, new).with_context(|| format!("write {document}"))?;
    say(format_args!("wrote section {name} of {document}"));
    Ok(())
}

/// Puts each text into the place of its section where the document has one.
///
/// # Errors
/// When it has none of them, or cannot be written.
pub fn write_known(document: &str, sections: &[(&str, String)]) -> Result<()> {
    let path = root().join(document);
    let old = fs::read_to_string(&path).with_context(|| format!("read {document}"))?;
    let known = sections.iter().filter(|(name, _)| old.contains(&format!("<!-- {name} -->\n")));
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        bail!("{document} has no section for what was measured");
    }
    known.into_iter().try_for_each(|(name, text)| write(document, name, text))
}

fn replaced(old: &str, name: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let found = old.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}{}\n{end}{after}", text.trim_end()))
    });
    match found {
        Some(new) => Ok(new),
        None => bail!("it has no `{}` followed by `{}`: put them back", begin.trim(), end.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_nothing_else() {
        let old = "# A\n<!-- a -->\nold\n<!-- /a -->\nkept\n<!-- b -->\n<!-- /b -->\n";
        let new = replaced(old, "a", "new\n").unwrap();
        assert_eq!(new, old.replace("old", "new"));
        assert_eq!(replaced(&new, "a", "new").unwrap(), new);
        assert!(replaced(&new, "b", "x").unwrap().ends_with("kept\n<!-- b -->\nx\n<!-- /b -->\n"));
        assert!(replaced(old, "c", "").is_err());
        assert!(replaced("<!-- /a -->\n<!-- a -->\n", "a", "").is_err());
    }
}
