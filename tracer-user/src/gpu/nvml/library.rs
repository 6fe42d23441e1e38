//! NVIDIA's library, opened.

use std::{path::Path, ptr::NonNull};

use nvml_wrapper::{Nvml, error::NvmlError};

use crate::gpu::failure::is_absent;

/// The loader's name for it.
const NAME: &str = "libnvidia-ml.so.1";

/// An open library, closed when it is dropped. What is borrowed of it must be dropped before: an owner
/// declares it as the last of its fields.
pub struct Library(NonNull<Nvml>);

/// Why there is no library.
pub enum Absence {
    /// Nothing of NVIDIA's is here.
    None,
    /// Something is, and does not work.
    Failed(NvmlError),
}

impl Library {
    /// Opens `path`, or else the loader's `libnvidia-ml.so.1`.
    ///
    /// # Errors
    /// When there is none, no driver or no device, or when it fails.
    pub fn open(path: Option<&Path>) -> Result<Self, Absence> {
        let mut builder = Nvml::builder();
        if let Some(path) = path {
            builder.lib_path(path.as_os_str());
        }
        let opened = builder.init().and_then(|nvml| Ok((nvml.device_count()?, nvml)));
        match opened {
            Ok((0, _)) => Err(Absence::None),
            Ok((_, nvml)) => Ok(Self(NonNull::from(Box::leak(Box::new(nvml))))),
            Err(error) if is_absent(&error, &path.unwrap_or(Path::new(NAME)).to_string_lossy()) => {
                Err(Absence::None)
            }
            Err(error) => Err(Absence::Failed(error)),
        }
    }

    /// The library, for as long as this lives.
    pub fn nvml(&self) -> &'static Nvml {
        // SAFETY: `open` leaked it, and only `drop` frees it, after all that borrows it (see the type).
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: leaked by `open`, freed once, and nothing borrows it any more (see the type).
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
