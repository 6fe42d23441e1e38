//! Asking a device for one value after the other: what it does not tell is not asked for again.

use std::collections::HashMap;

use nvml_wrapper::error::NvmlError;

use super::{
    cursor::Cursor,
    fields::Silent,
    pace::{Pace, Rest},
};
use crate::gpu::{
    failure::{Failure, words},
    source::Answers,
};

/// The values of a device, as a note names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Utilization,
    UtilizationRing,
    MemoryRing,
    Memory,
    Power,
    Energy,
    Clock,
    Temperature,
    ComputeProcesses,
    MpsClients,
    GraphicsProcesses,
    ProcessUtilization,
    MemoryClock,
    Activity,
    Throttling,
    Ecc,
    Fields,
    PowerLimit,
    Encoder,
    Decoder,
    Xids,
    Parts,
}

impl Value {
    const fn name(self) -> &'static str {
        match self {
            Self::Utilization => "utilisation",
            Self::UtilizationRing => "utilisation over time",
            Self::MemoryRing => "memory utilisation over time",
            Self::Memory => "memory in use",
            Self::Power => "power",
            Self::Energy => "energy",
            Self::Clock => "clock",
            Self::Temperature => "temperature",
            Self::ComputeProcesses => "processes that compute",
            Self::MpsClients => "processes that compute through MPS",
            Self::GraphicsProcesses => "processes that draw",
            Self::ProcessUtilization => "utilisation by process",
            Self::MemoryClock => "memory clock",
            Self::Activity => "activity of multiprocessors, tensor units and memory",
            Self::Throttling => "throttling",
            Self::Ecc => "ECC errors",
            Self::Fields => "counters of errors and of time throttled",
            Self::PowerLimit => "power limit",
            Self::Encoder => "encoder",
            Self::Decoder => "decoder",
            Self::Xids => "XID errors",
            Self::Parts => "MIG instances",
        }
    }

    /// Whether a device that does not answer for it is lost: drivers fail for single values of devices that
    /// are well.
    const fn is_essential(self) -> bool {
        matches!(self, Self::Memory)
    }

    /// Whether the owner of a job is to hear that it is missing. What only some models have is a matter of
    /// `doctor`'s.
    const fn is_expected(self) -> bool {
        !matches!(
            self,
            Self::MemoryClock
                | Self::UtilizationRing
                | Self::MemoryRing
                | Self::MpsClients
                | Self::Activity
                | Self::Throttling
                | Self::Ecc
                | Self::Fields
                | Self::PowerLimit
                | Self::Encoder
                | Self::Decoder
                | Self::Xids
                | Self::Parts
        )
    }
}

/// What is known of devices beyond one opening of the library, by uuid.
#[derive(Default)]
pub struct Known(HashMap<String, Memory>);

/// What is known of one device.
#[derive(Default)]
pub struct Memory {
    given_up: Vec<(Value, String)>,
    /// How far the rings were read: of the device, of its memory, of its processes.
    pub of_gpu: Cursor,
    pub of_memory: Cursor,
    pub of_processes: Cursor,
    /// When what is dear is asked.
    pub pace: Pace,
    /// How long it has been idle.
    pub rest: Rest,
    /// Which fields it does not tell.
    pub silent: Silent,
}

impl Known {
    /// The devices were opened anew: what they did not tell may have come with a driver.
    pub fn ask_again(&mut self) {
        self.0.values_mut().for_each(|memory| memory.forget());
    }

    /// What is known of the device of that uuid.
    pub fn of(&mut self, uuid: &str) -> &mut Memory {
        self.0.entry(uuid.to_owned()).or_default()
    }

    /// What the device does not tell, and why. That it has no parts is no lack.
    pub fn lacking(&self, uuid: &str) -> Vec<String> {
        let given_up = self.0.get(uuid).into_iter().flat_map(|memory| &memory.given_up);
        let lacking = given_up.filter(|(value, _)| *value != Value::Parts);
        lacking.map(|(value, why)| lack(*value, why)).collect()
    }
}

impl Memory {
    fn forget(&mut self) {
        self.given_up.clear();
        self.silent = Silent::default();
        self.pace = Pace::default();
        self.rest.end();
    }
}

fn lack(value: Value, why: &str) -> String {
    format!("{} ({why})", value.name())
}

/// That the device called `name` does not tell something.
pub fn sentence(name: &str, lack: &str) -> String {
    format!("{name} does not report its {lack}")
}

/// Asks one device, and gathers what is to be said of it.
pub struct Asker<'a> {
    /// Its number and model.
    pub name: String,
    /// It is a MIG instance: most values are not offered, and it may go at any time.
    pub is_part: bool,
    /// What is known of it.
    pub memory: &'a mut Memory,
    /// What is to be said from now on to whoever was on it.
    notes: Vec<String>,
    /// The same to everybody: who was on it is not known.
    to_all: Vec<String>,
}

impl<'a> Asker<'a> {
    /// Of the device called `name`, of which `memory` is known.
    pub fn new(name: String, is_part: bool, memory: &'a mut Memory) -> Self {
        Self { name, is_part, memory, notes: Vec::new(), to_all: Vec::new() }
    }

    /// Says that a value is missing, and why.
    pub fn say(&mut self, value: Value, why: &str) {
        let notes = match value {
            Value::ComputeProcesses => &mut self.to_all,
            _ => &mut self.notes,
        };
        notes.push(sentence(&self.name, &lack(value, why)));
    }

    /// Has all of that said in `answers`, of the device of that uuid.
    pub fn tell(self, uuid: &str, answers: &mut Answers) {
        answers.say(uuid, self.notes);
        answers.say_to_all(self.to_all);
    }

    /// The value, unless the device does not tell it.
    ///
    /// # Errors
    /// When the device is lost.
    pub fn ask<T>(
        &mut self,
        value: Value,
        mut call: impl FnMut() -> Result<T, NvmlError>,
    ) -> Result<Option<T>, NvmlError> {
        if self.memory.given_up.iter().any(|(known, _)| *known == value) {
            return Ok(None);
        }
        let answer = match call() {
            // A process came between the question for their number and that for them.
            Err(NvmlError::InsufficientSize(_)) => call(),
            answer => answer,
        };
        match answer {
            Ok(answer) => Ok(Some(answer)),
            // An instance that was destroyed since it was listed.
            Err(NvmlError::InvalidArg) if self.is_part => Ok(None),
            Err(error) => match Failure::of(&error) {
                Failure::Lost => Err(error),
                Failure::Unclear if value.is_essential() => Err(error),
                Failure::Unclear | Failure::NotNow => Ok(None),
                Failure::Never => {
                    let why = words(&error);
                    if value.is_expected() && !self.is_part {
                        self.say(value, &why);
                    }
                    self.memory.given_up.push((value, why));
                    Ok(None)
                }
            },
        }
    }
}
