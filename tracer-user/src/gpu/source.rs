//! Where readings come from: a driver's library, or the kernel's files.

use super::reading::DeviceReading;

/// The devices of one kind of driver.
pub trait GpuSource {
    /// Adds what each device tells now. It may block for as long as its driver does.
    fn read(&mut self, answers: &mut Answers) -> Presence;
}

/// Whether a source is worth asking in the next period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// There are devices, or something that is to give some.
    Here,
    /// No driver or no device.
    Absent,
}

/// What one reading brought.
#[derive(Debug, Default)]
pub struct Answers {
    /// One for each device that answered.
    pub devices: Vec<DeviceReading>,
    /// What is to be said.
    pub notes: Vec<Note>,
    /// Devices lost, and openings that failed.
    pub failures: Vec<Note>,
}

/// A text about one device, by its uuid, or about all.
pub type Note = (Option<String>, String);

impl Answers {
    /// Says `texts` of one device to whoever was on it.
    pub fn say(&mut self, uuid: &str, texts: impl IntoIterator<Item = String>) {
        self.notes.extend(texts.into_iter().map(|text| (Some(uuid.to_owned()), text)));
    }

    /// Says `texts` to everybody.
    pub fn say_to_all(&mut self, texts: impl IntoIterator<Item = String>) {
        self.notes.extend(texts.into_iter().map(|text| (None, text)));
    }

    /// Says of one device that it was lost, and of what.
    pub fn say_lost(&mut self, uuid: &str, text: String) {
        self.failures.push((Some(uuid.to_owned()), text));
    }

    /// Says to everybody what could not be opened, or read.
    pub fn say_failed(&mut self, text: String) {
        self.failures.push((None, text));
    }
}
