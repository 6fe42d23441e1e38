//! What an error of NVML means for what comes after it.

use nvml_wrapper::error::NvmlError;

/// What to do after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This device, driver or permission will never give this value.
    Never,
    /// The device is gone, until the library is opened anew.
    Lost,
    /// The device may be gone, or this value alone.
    Unclear,
    /// No value this time.
    NotNow,
}

impl Failure {
    /// What `error` of a call on a device means.
    pub fn of(error: &NvmlError) -> Self {
        match error {
            NvmlError::NotSupported
            | NvmlError::FailedToLoadSymbol(_)
            | NvmlError::FunctionNotFound
            | NvmlError::NoPermission
            | NvmlError::InvalidArg
            // Newer than the wrapper: a version of a struct or a function that is not taken.
            | NvmlError::UnexpectedVariant(_) => Self::Never,
            NvmlError::GpuLost
            | NvmlError::Uninitialized
            | NvmlError::ResetRequired
            | NvmlError::DriverNotLoaded
            | NvmlError::LibRmVersionMismatch => Self::Lost,
            NvmlError::Unknown
            | NvmlError::IrqIssue
            | NvmlError::InsufficientPower
            | NvmlError::OperatingSystem => Self::Unclear,
            _ => Self::NotNow,
        }
    }
}

/// Whether `error`, of opening `library`, means that there are no NVIDIA GPUs here (yet): neither the
/// library nor a driver, as on a node of another kind that shares an image. A library that is there and does
/// not load is another matter.
pub fn is_absent(error: &NvmlError, library: &str) -> bool {
    match error {
        // Of a library that it needs the loader says the same, with that one's name.
        NvmlError::LibloadingError(error) => {
            let text = error.to_string();
            text.contains(library) && text.contains("No such file or directory")
        }
        NvmlError::LibraryNotFound
        | NvmlError::DriverNotLoaded
        | NvmlError::FailedToLoadSymbol(_) => true,
        _ => false,
    }
}
