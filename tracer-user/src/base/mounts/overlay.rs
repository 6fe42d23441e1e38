//! The folders that an overlay shows as one, from its options (`fs/overlayfs/params.c`).

use crate::base::mountinfo::unescape;

/// Type of an overlay.
pub const TYPE: &str = "overlay";

/// The paths of all its layers, from `options` as mountinfo has them.
pub fn layers(options: &str) -> Vec<String> {
    let mut layers = Vec::new();
    for option in options.split(',') {
        match option.split_once('=') {
            Some(("lowerdir", paths)) => layers.extend(several(paths)),
            Some(("upperdir" | "lowerdir+" | "datadir+", path)) => layers.push(unescape(path)),
            _ => {}
        }
    }
    layers
}

/// The paths of `written`, between colons; two are before those of data alone. A colon in a name is `\072` on
/// recent kernels; before, it is as it was given to mount, with a backslash, which is `\134`.
fn several(written: &str) -> impl Iterator<Item = String> {
    const IN_NAME: &str = "\u{0}";
    let marked = written.replace(r"\072", IN_NAME).replace(r"\134:", IN_NAME);
    let paths: Vec<_> =
        marked.split(':').map(|path| unescape(path).replace(IN_NAME, ":")).collect();
    paths.into_iter().filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_name_a_layer() {
        assert_eq!(
            layers("rw,lowerdir=/a:/b::/c,upperdir=/u,workdir=/w"),
            ["/a", "/b", "/c", "/u"]
        );
        assert_eq!(layers("rw,lowerdir+=/a,lowerdir+=/b:c,datadir+=/d"), ["/a", "/b:c", "/d"]);
        assert_eq!(
            layers(r"rw,lowerdir=/a\134:b:/c\054d\040e,upperdir=/e"),
            ["/a:b", "/c,d e", "/e"]
        );
        assert_eq!(layers(r"rw,lowerdir=/a\072b:/c"), ["/a:b", "/c"]);
        assert!(layers("rw,size=1k").is_empty());
    }
}
