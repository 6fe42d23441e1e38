//! The kernel's FUSE protocol (`include/uapi/linux/fuse.h`), as far as the file system of the tests needs it:
//! from a request's bytes to its answer's.

/// The file to read, write and map.
pub const FILE: &str = "file";
/// A program that does nothing: the kernel reads it once and executes another in its place.
pub const SCRIPT: &str = "script";
/// A folder that interpreters look for modules in, with [`MODULE`] and what tells whose that is.
pub const SITE: &str = "site-packages";
/// A Python module, in [`SITE`].
pub const MODULE: &str = "lone.py";
/// Who looks for that name in [`SITE`] has the server answer nothing any more.
pub const HANG: &str = "hang";
/// Bytes of [`FILE`].
pub const FILE_BYTES: u64 = 64 << 20;

const SCRIPT_TEXT: &[u8] = b"#!/bin/true\n";
const MODULE_TEXT: &[u8] = b"value = 1\n";
/// Bytes of one write at most.
const MOST_WRITTEN: usize = 128 << 10;
/// Bytes of a request at most.
pub const ROOM: usize = MOST_WRITTEN + 4096;
/// The kernel's `fuse_in_header`.
const HEADER: usize = 40;
/// The version of the protocol spoken here: later ones add what is not used.
const VERSION: (u32, u32) = (7, 31);
/// `FUSE_ASYNC_READ`: several reads at once, for which the kernel then waits page by page.
const ASYNC_READ: u32 = 1;
/// One page, so that each page is asked for by itself.
const READ_AHEAD: u32 = 4096;

/// A kind of request, by its number in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Request {
    /// A name in a folder.
    Lookup = 1,
    /// Attributes.
    Attributes = 3,
    /// Opening a file.
    Open = 14,
    /// Reading a file.
    Read = 15,
    /// Writing one.
    Write = 16,
    /// Storing what was written.
    Sync = 20,
    /// Reading a folder.
    Folder = 28,
    /// An ioctl.
    Ioctl = 39,
}

/// What the kernel calls the folder, [`FILE`], [`SCRIPT`], [`SITE`] and [`MODULE`].
const ROOT_NODE: u64 = 1;
const FILE_NODE: u64 = 2;
const SCRIPT_NODE: u64 = 3;
const SITE_NODE: u64 = 4;
const MODULE_NODE: u64 = 5;

/// The kind of a request, [`Request`] or another.
pub fn kind(request: &[u8]) -> u32 {
    word(request, 4)
}

/// Whether the request is one for [`HANG`].
pub fn is_hang(request: &[u8]) -> bool {
    kind(request) == Request::Lookup as u32 && name_in(&request[HEADER..]) == HANG.as_bytes()
}

/// The answer to a request, with its header; `None` where none is expected.
pub fn answer(request: &[u8]) -> Option<Vec<u8>> {
    let (unique, node) = (long(request, 8), long(request, 16));
    let answer = answer_to(kind(request), node, &request[HEADER..])?;
    let (error, body) = match &answer {
        Ok(body) => (0, &body[..]),
        Err(error) => (-error, &[][..]),
    };
    let mut whole = Vec::with_capacity(16 + body.len());
    whole.extend((16 + body.len() as u32).to_ne_bytes());
    whole.extend(error.to_ne_bytes());
    whole.extend(unique.to_ne_bytes());
    whole.extend(body);
    Some(whole)
}

/// What is answered to a request of `kind` about `node`: the body, or an error; `None` where nothing is expected.
fn answer_to(kind: u32, node: u64, body: &[u8]) -> Option<Result<Vec<u8>, i32>> {
    const FORGET: u32 = 2;
    const SET_ATTRIBUTES: u32 = 4;
    const STATFS: u32 = 17;
    const RELEASE: u32 = 18;
    const INIT: u32 = 26;
    const OPEN_FOLDER: u32 = 27;
    const RELEASE_FOLDER: u32 = 29;
    const INTERRUPT: u32 = 36;
    const FORGET_SEVERAL: u32 = 42;
    let is = |request: Request| kind == request as u32;
    Some(Ok(match kind {
        FORGET | FORGET_SEVERAL | INTERRUPT => return None,
        INIT => greeting(),
        SET_ATTRIBUTES => attributes_valid(node),
        // Of all that only how long a name may be, which an overlay heeds.
        STATFS => [vec![0; 44], 255_u32.to_ne_bytes().to_vec(), vec![0; 32]].concat(),
        RELEASE | RELEASE_FOLDER => Vec::new(),
        // A handle and flags: none of them is used.
        OPEN_FOLDER => vec![0; 16],
        _ if is(Request::Open) => vec![0; 16],
        _ if is(Request::Lookup) => return Some(lookup(node, body)),
        _ if is(Request::Attributes) => attributes_valid(node),
        _ if is(Request::Read) => content(node, long(body, 8), word(body, 16)),
        _ if is(Request::Write) => (u64::from(word(body, 16))).to_ne_bytes().to_vec(),
        _ if is(Request::Sync) => Vec::new(),
        _ if is(Request::Folder) => names(node, long(body, 8)),
        _ if is(Request::Ioctl) => vec![0; 16],
        // Flushing, extended attributes and whatever else: the kernel asks once and never again.
        _ => return Some(Err(libc::ENOSYS)),
    }))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// `fuse_init_out`.
fn greeting() -> Vec<u8> {
    let words = [VERSION.0, VERSION.1, READ_AHEAD, ASYNC_READ, 0, MOST_WRITTEN as u32, 1];
    let mut answer: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    answer.resize(64, 0);
    answer
}

/// `fuse_attr`.
fn attributes(node: u64) -> Vec<u8> {
    let (mode, bytes) = match node {
        ROOT_NODE | SITE_NODE => (libc::S_IFDIR | 0o755, 0),
        FILE_NODE => (libc::S_IFREG | 0o644, FILE_BYTES),
        MODULE_NODE => (libc::S_IFREG | 0o644, MODULE_TEXT.len() as u64),
        _ => (libc::S_IFREG | 0o755, SCRIPT_TEXT.len() as u64),
    };
    let mut answer = Vec::with_capacity(88);
    answer.extend([node, bytes, bytes / 512, 0, 0, 0].iter().flat_map(|long| long.to_ne_bytes()));
    // Of nanoseconds three, then mode, links, user, group, device, size of a block, flags.
    let words = [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0];
    answer.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    answer
}

/// `fuse_attr_out`: valid for no time at all.
fn attributes_valid(node: u64) -> Vec<u8> {
    [vec![0; 16], attributes(node)].concat()
}

/// The name that ends with a zero byte.
fn name_in(body: &[u8]) -> &[u8] {
    body.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// What is in a folder.
fn entries(folder: u64) -> &'static [(u64, &'static str)] {
    match folder {
        SITE_NODE => &[(MODULE_NODE, MODULE)],
        _ => &[(FILE_NODE, FILE), (SCRIPT_NODE, SCRIPT), (SITE_NODE, SITE)],
    }
}

/// `fuse_entry_out` of a name in a folder.
fn lookup(folder: u64, body: &[u8]) -> Result<Vec<u8>, i32> {
    let name = name_in(body);
    let found = entries(folder).iter().find(|(_, known)| known.as_bytes() == name);
    let (node, _) = found.ok_or(libc::ENOENT)?;
    Ok([node.to_ne_bytes().to_vec(), vec![0; 32], attributes(*node)].concat())
}

/// Bytes of a file.
fn content(node: u64, at: u64, most: u32) -> Vec<u8> {
    if node == FILE_NODE {
        let left = FILE_BYTES.saturating_sub(at);
        return vec![0; left.min(most.into()) as usize];
    }
    let text = if node == MODULE_NODE { MODULE_TEXT } else { SCRIPT_TEXT };
    text.iter().skip(at as usize).take(most as usize).copied().collect()
}

/// `fuse_dirent` of each name in a folder from number `from` on.
fn names(folder: u64, from: u64) -> Vec<u8> {
    let mut answer = Vec::new();
    for (index, (node, name)) in entries(folder).iter().enumerate().skip(from as usize) {
        answer.extend(node.to_ne_bytes());
        answer.extend((index as u64 + 1).to_ne_bytes());
        answer.extend((name.len() as u32).to_ne_bytes());
        let kind = if *node == SITE_NODE { libc::DT_DIR } else { libc::DT_REG };
        answer.extend(u32::from(kind).to_ne_bytes());
        answer.extend(name.bytes());
        answer.resize(answer.len().next_multiple_of(8), 0);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_protocols_sizes() {
        assert_eq!(greeting().len(), 64);
        assert_eq!(attributes(FILE_NODE).len(), 88);
        assert_eq!(attributes_valid(ROOT_NODE).len(), 104);
        assert_eq!(lookup(ROOT_NODE, b"file\0").unwrap().len(), 128);
        assert_eq!(lookup(ROOT_NODE, b"lone.py\0"), Err(libc::ENOENT));
        assert_eq!(lookup(SITE_NODE, b"lone.py\0").unwrap().len(), 128);
        assert_eq!(names(ROOT_NODE, 0).len(), 32 + 32 + 40);
        assert!(names(ROOT_NODE, 3).is_empty());
        assert_eq!(content(MODULE_NODE, 0, 4096), MODULE_TEXT);
        assert_eq!(content(FILE_NODE, FILE_BYTES - 1, 4096).len(), 1);
        assert_eq!(content(SCRIPT_NODE, 0, 4096), SCRIPT_TEXT);
    }
}
