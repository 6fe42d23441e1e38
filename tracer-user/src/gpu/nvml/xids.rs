//! XID errors, which the driver queues for whoever registered for them.

use nvml_wrapper::{
    Device, EventSet,
    bitmasks::event::EventTypes,
    error::{NvmlError, nvml_try},
};
use nvml_wrapper_sys::bindings::nvmlEventData_t;

/// Events taken at a time, those that are no XID too: one error can come with hundreds that follow it, and
/// what is left is taken at the next reading.
const MOST: usize = 1024;
/// Stands for the whole device.
const NO_INSTANCE: u32 = u32::MAX;

/// The queue of one device, whole: instances report through it.
#[derive(Default)]
pub struct Xids(Option<EventSet<'static>>);

/// One error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xid {
    /// Its code, by NVIDIA's list.
    pub code: u64,
    /// The GPU instance that it is of, where it is not of the whole device.
    pub instance: Option<u32>,
}

impl Xids {
    /// What was reported since the last call; what came before the first is nobody's to tell.
    ///
    /// # Errors
    /// As the library answers.
    pub fn read(&mut self, device: &Device<'static>) -> Result<Vec<Xid>, NvmlError> {
        if self.0.is_none() {
            let nvml = device.nvml();
            // Dropping a set calls it, whether it is there or not.
            if nvml.lib().nvmlEventSetFree.is_err() {
                return Err(NvmlError::NotSupported);
            }
            let registered =
                device.register_events(EventTypes::CRITICAL_XID_ERROR, nvml.create_event_set()?);
            self.0 = Some(registered.map_err(|error| error.error)?);
        }
        let Some(set) = &self.0 else { return Ok(Vec::new()) };
        let mut xids = Vec::new();
        for _ in 0..MOST {
            match take(set) {
                Ok(xid) => xids.extend(xid),
                Err(NvmlError::Timeout) => break,
                // What was taken is told first; the error comes again.
                Err(_) if !xids.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(xids)
    }
}

/// The next event, waiting for none. The wrapper's own call drops the instance.
fn take(set: &EventSet<'static>) -> Result<Option<Xid>, NvmlError> {
    let wait = set.nvml.lib().nvmlEventSetWait_v2.as_ref();
    let wait = wait.map_err(|_| NvmlError::NotSupported)?;
    let mut data = nvmlEventData_t {
        device: std::ptr::null_mut(),
        eventType: 0,
        eventData: 0,
        gpuInstanceId: NO_INSTANCE,
        computeInstanceId: NO_INSTANCE,
    };
    // SAFETY: the set is alive, and the library writes one such struct.
    nvml_try(unsafe { wait(set.handle(), &mut data, 0) })?;
    let is_xid = data.eventType & EventTypes::CRITICAL_XID_ERROR.bits() != 0;
    let instance = Some(data.gpuInstanceId).filter(|id| *id != NO_INSTANCE);
    Ok(is_xid.then_some(Xid { code: data.eventData, instance }))
}
