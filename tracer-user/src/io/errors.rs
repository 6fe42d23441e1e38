//! Names of the kernel's errors.

macro_rules! names {
    ($($name:ident)*) => {
        /// The name of error `number`, `ENOENT`; `E` and the number of one that no call on files gives.
        pub fn name_of(number: u16) -> String {
            match i32::from(number) {
                $(libc::$name => stringify!($name).into(),)*
                other => format!("E{other}"),
            }
        }
    };
}

names! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST
    EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE ERANGE
    EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENODATA ENONET EREMOTE EPROTO EOVERFLOW EBADFD EUSERS
    EOPNOTSUPP ENOTCONN ECONNRESET ECONNREFUSED ECONNABORTED ETIMEDOUT EHOSTDOWN EHOSTUNREACH ENETUNREACH EALREADY
    EINPROGRESS ESTALE EDQUOT ECANCELED EREMOTEIO ENOKEY EKEYEXPIRED EDESTADDRREQ ENOTSOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_bear_the_names_of_the_headers() {
        assert_eq!(name_of(2), "ENOENT");
        assert_eq!(name_of(libc::EDQUOT as u16), "EDQUOT");
        assert_eq!(name_of(4095), "E4095");
    }
}
