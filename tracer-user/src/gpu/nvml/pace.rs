//! When what is dear is asked. On an H100 with driver 580 its counter of energy costs the CPU 3.6 to 4.6 ms, whether it is
//! divided 0.3 to 0.5, its count of PCIe replays 0.3 to 0.5, most else 0.03 to 0.1 (`tests/hardware/nvml_calls.py` prints it).

/// The readings after which it is asked in any case; more often at first when somebody has come.
pub const FOR_READINGS: u32 = 10;

/// How long the same processes have been on a device.
#[derive(Debug, Default)]
pub struct Pace {
    pids: Vec<u32>,
    readings: u32,
}

impl Pace {
    /// Whether it is to be asked with this reading, which found these processes.
    pub fn is_due(&mut self, pids: Vec<u32>) -> bool {
        if pids != self.pids {
            *self = Self { pids, readings: 0 };
        }
        let readings = self.readings;
        self.readings = readings.wrapping_add(1);
        let is_early = readings < FOR_READINGS && readings.is_power_of_two();
        readings.is_multiple_of(FOR_READINGS) || is_early && !self.pids.is_empty()
    }
}

/// How long a device has been idle: nobody is on it, and it does nothing.
#[derive(Debug, Default)]
pub struct Rest {
    readings: u32,
}

impl Rest {
    /// Whether its ring need not be read. A snapshot is of 1/6 s at the least: work in turns may hide from some of them
    /// where the driver tells no processes, as in containers.
    pub fn is_long(&mut self, is_held: bool, percent: u32) -> bool {
        self.readings = if is_held || percent > 0 { 0 } else { self.readings.saturating_add(1) };
        self.readings > FOR_READINGS
    }

    /// The ring told of work.
    pub fn end(&mut self) {
        self.readings = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_rests_when_nothing_was_seen_for_ten_readings() {
        let mut rest = Rest::default();
        let mut long = |is_held, percent| rest.is_long(is_held, percent);
        assert!((0..10).all(|_| !long(false, 0)) && long(false, 0) && long(false, 0));
        assert!(!long(false, 7) && !long(false, 0), "it works again");
        assert!((0..9).all(|_| !long(false, 0)) && long(false, 0));
        assert!((0..20).all(|_| !long(true, 0)), "somebody is on it");
        rest.is_long(false, 0);
        rest.end();
        assert!((0..10).all(|_| !rest.is_long(false, 0)), "the ring knew of work");
    }

    fn due(pace: &mut Pace, pids: &[u32], readings: usize) -> Vec<usize> {
        (0..readings).filter(|_| pace.is_due(pids.to_vec())).collect()
    }

    #[test]
    fn often_when_somebody_has_come_then_each_tenth() {
        let mut pace = Pace::default();
        assert_eq!(due(&mut pace, &[], 25), [0, 10, 20], "nobody is there");
        assert_eq!(due(&mut pace, &[7], 35), [0, 1, 2, 4, 8, 10, 20, 30]);
        assert_eq!(due(&mut pace, &[7, 8], 2), [0, 1]);
        assert_eq!(due(&mut pace, &[], 12), [0, 10], "they have gone");
    }
}
