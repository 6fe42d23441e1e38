//! POSIX access control lists: who besides owner and group may read a folder and what is made in it.
//!
//! Their form is that of the extended attributes, by the kernel's include/uapi/linux/posix_acl_xattr.h: a version, then
//! tag, rights and id of each entry, all little-endian. The owner of a folder needs no capability to set them.

use std::io;

use rustix::{
    fs::{XattrFlags, fgetxattr, fsetxattr},
    io::Errno,
};

use super::folder::Folder;

/// That of the folder itself, and what is made in it begins with.
const NAMES: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];
const VERSION: u32 = 2;
/// Of entries that are nobody's in particular.
const NO_ID: u32 = u32::MAX;

/// Has `uid` read `folder` and what is made in it from now on; owner and group keep `rwx` and `r-x`, others have
/// nothing. A folder that has such a list keeps it: somebody else may have set it. Gives whether the file system has
/// such lists.
///
/// # Errors
/// When they cannot be set.
pub fn let_read(folder: &Folder, uid: u32) -> io::Result<bool> {
    let list = list(uid);
    for name in NAMES {
        match fgetxattr(folder, name, &mut [0_u8; 0][..]) {
            Ok(_) => continue,
            Err(Errno::NODATA) => {}
            Err(Errno::OPNOTSUPP) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        match fsetxattr(folder, name, &list, XattrFlags::empty()) {
            Err(Errno::OPNOTSUPP) => return Ok(false),
            Err(Errno::INVAL) => {
                // As in a unit with PrivateUsers=yes.
                let why = format!("user {uid} is not known in the user namespace of this process");
                return Err(io::Error::other(why));
            }
            set => set?,
        }
    }
    Ok(true)
}

/// The list, as an attribute holds it: owner, that user, group, the most that user and group may have, others.
fn list(uid: u32) -> Vec<u8> {
    const READ: u16 = 5;
    let entries: [(u16, u16, u32); 5] =
        [(1, 7, NO_ID), (2, READ, uid), (4, READ, NO_ID), (16, READ, NO_ID), (32, 0, NO_ID)];
    let mut list = Vec::from(VERSION.to_le_bytes());
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}
