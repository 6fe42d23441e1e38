//! What an error of NVML means for what comes after it.

use nvml_wrapper::error::NvmlError;

/// `NVML_ERROR_GPU_NOT_FOUND`, which the wrapper does not know: what opening the library says without a GPU.
const GPU_NOT_FOUND: u32 = 28;
/// `NVML_ERROR_NOT_READY`, the same.
const NOT_READY: u32 = 27;

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

/// `error` as its reader has to know it.
pub fn words(error: &NvmlError) -> String {
    match error {
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => {
            "this driver does not offer it".into()
        }
        NvmlError::GpuLost => "the device fell off the bus or cannot be reached".into(),
        // Newer than the wrapper.
        NvmlError::UnexpectedVariant(NOT_READY) => "the driver is not ready".into(),
        NvmlError::UnexpectedVariant(GPU_NOT_FOUND) => "no GPU was found".into(),
        NvmlError::UnexpectedVariant(code) => format!("NVML's error {code}"),
        other => other.to_string(),
    }
}

/// Whether `error`, of opening `library`, means that there are no NVIDIA GPUs here (yet): no
/// library, no driver or no device, as on a node of another kind that shares an image. A library that is there
/// and does not load is another matter.
pub fn is_absent(error: &NvmlError, library: &str) -> bool {
    match error {
        // Of a library that it needs the loader says the same, with that one's name.
        NvmlError::LibloadingError(error) => {
            let text = error.to_string();
            text.contains(library) && text.contains("No such file or directory")
        }
        NvmlError::LibraryNotFound
        | NvmlError::DriverNotLoaded
        | NvmlError::UnexpectedVariant(GPU_NOT_FOUND)
        | NvmlError::FailedToLoadSymbol(_) => true,
        _ => false,
    }
}
