//! Parts of a document that chores write: from `<!-- NAME -->` to `<!-- /NAME -->`. What stands around
//! them is written by hand and stays.

use anyhow::{Context, Result, ensure};
use std::fs;

use crate::{root, say};

/// A section's name and its text.
pub type Section = (&'static str, String);

/// Puts each text into the place of its section where `document`, a path below the workspace's root, has
/// one.
///
/// # Errors
/// When it has none of them, or cannot be written.
pub fn write(document: &str, sections: &[Section]) -> Result<()> {
    let text = with(document, sections)?;
    fs::write(root().join(document), text).with_context(|| format!("write {document}"))?;
    say(format_args!("wrote what was measured into {document}"));
    Ok(())
}

/// The document as [`write()`] leaves it.
///
/// # Errors
/// As there.
pub fn with(document: &str, sections: &[Section]) -> Result<String> {
    let old = fs::read_to_string(root().join(document));
    replaced(&old.with_context(|| format!("read {document}"))?, sections)
        .with_context(|| format!("write to {document}"))
}

fn replaced(old: &str, sections: &[Section]) -> Result<String> {
    let (mut new, mut found) = (old.to_owned(), 0);
    for (name, text) in sections {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
        let Some((before, rest)) = new.split_once(&begin) else { continue };
        let (_, after) = rest.split_once(&end).with_context(|| format!("no {end} in it"))?;
        new = format!("{before}{begin}{}\n{end}{after}", text.trim_end());
        found += 1;
    }
    let names: Vec<_> = sections.iter().map(|(name, _)| *name).collect();
    ensure!(found > 0, "it has none of the sections {}: put one back", names.join(", "));
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_are_there_are_replaced_and_nothing_else() {
        let old = "# A\n<!-- a -->\nold\n<!-- /a -->\nkept\n<!-- b -->\n<!-- /b -->\n";
        let with = |sections: &[(&'static str, &str)]| {
            let owned: Vec<_> = sections.iter().map(|(n, text)| (*n, (*text).to_owned())).collect();
            replaced(old, &owned)
        };
        assert_eq!(with(&[("a", "new\n"), ("c", "x")]).unwrap(), old.replace("old", "new"));
        assert!(with(&[("b", "x")]).unwrap().ends_with("kept\n<!-- b -->\nx\n<!-- /b -->\n"));
        assert!(with(&[("c", "")]).is_err());
        assert!(replaced("<!-- /a -->\n<!-- a -->\n", &[("a", String::new())]).is_err());
    }
}
