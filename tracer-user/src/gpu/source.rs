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
    /// What is to be said, of one device by its uuid, or of all.
    pub notes: Vec<(Option<String>, String)>,
    /// Devices lost, and openings that failed.
    pub failures: u64,
}

impl Answers {
    /// Says `texts` of one device.
    pub fn say(&mut self, uuid: &str, texts: impl IntoIterator<Item = String>) {
        self.notes.extend(texts.into_iter().map(|text| (Some(uuid.to_owned()), text)));
    }

    /// Says of one device that it was lost, and of what.
    pub fn say_lost(&mut self, uuid: &str, text: String) {
        self.failures += 1;
        self.say(uuid, [text]);
    }

    /// Says to everybody what could not be opened.
    pub fn say_failed(&mut self, text: String) {
        self.failures += 1;
        self.notes.push((None, text));
    }
}
