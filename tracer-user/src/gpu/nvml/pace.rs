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
        readings % FOR_READINGS == 0 || is_early && !self.pids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
