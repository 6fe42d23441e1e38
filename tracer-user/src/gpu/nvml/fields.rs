//! What one call tells of a device: counters of errors and of time held down, temperatures, links.

use nvml_wrapper::{
    Device,
    enums::device::SampleValue,
    error::NvmlError,
    struct_wrappers::device::FieldValueSample,
    structs::device::FieldId,
    sys_exports::field_id::{
        NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN as POWER_BRAKE,
        NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN as HARDWARE_THERMAL,
        NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN as SOFTWARE_THERMAL,
        NVML_FI_DEV_ECC_SBE_VOL_TOTAL as ECC_CORRECTED, NVML_FI_DEV_MEMORY_TEMP as MEMORY_CELSIUS,
        NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL as NVLINK_CRC_DATA,
        NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL as NVLINK_CRC_FLIT,
        NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL as NVLINK_RECOVERIES,
        NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL as NVLINK_REPLAYS,
        NVML_FI_DEV_PCIE_COUNT_RX_BYTES as PCIE_RECEIVED,
        NVML_FI_DEV_PCIE_COUNT_TX_BYTES as PCIE_SENT,
        NVML_FI_DEV_PCIE_REPLAY_COUNTER as PCIE_REPLAYS, NVML_FI_DEV_PERF_POLICY_POWER as POWER,
        NVML_FI_DEV_PERF_POLICY_SYNC_BOOST as SYNC_BOOST,
        NVML_FI_DEV_PERF_POLICY_THERMAL as THERMAL,
        NVML_FI_DEV_REMAPPED_COR as REMAPPED_CORRECTABLE,
        NVML_FI_DEV_REMAPPED_UNC as REMAPPED_UNCORRECTABLE,
    },
};

use crate::gpu::reading::Counters;

const FIELDS: [u32; 17] = [
    MEMORY_CELSIUS,
    ECC_CORRECTED,
    REMAPPED_CORRECTABLE,
    REMAPPED_UNCORRECTABLE,
    PCIE_REPLAYS,
    PCIE_SENT,
    PCIE_RECEIVED,
    NVLINK_CRC_FLIT,
    NVLINK_CRC_DATA,
    NVLINK_REPLAYS,
    NVLINK_RECOVERIES,
    POWER,
    POWER_BRAKE,
    THERMAL,
    SOFTWARE_THERMAL,
    HARDWARE_THERMAL,
    SYNC_BOOST,
];

/// The fields, each `None` where the device does not tell it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fields {
    pub memory_celsius: Option<u64>,
    pub remapped_rows: Option<u64>,
    /// All but the errors that ECC could not correct.
    pub counters: Counters,
}

/// Which of them are asked for. Those that are not always cost the CPU 0.2 to 0.5 ms each.
#[derive(Clone, Copy)]
pub struct Asked {
    /// Somebody is on the device, whose time it is that is throttled.
    pub is_held: bool,
    /// What is dear and seldom grows is due.
    pub is_due: bool,
    /// Bytes over PCIe are not told otherwise.
    pub of_links: bool,
}

impl Asked {
    fn has(self, field: u32) -> bool {
        match field {
            POWER | POWER_BRAKE | THERMAL | SOFTWARE_THERMAL | HARDWARE_THERMAL | SYNC_BOOST => {
                self.is_held
            }
            PCIE_REPLAYS => self.is_due,
            PCIE_SENT | PCIE_RECEIVED => self.of_links,
            _ => true,
        }
    }
}

/// Which fields a device does not have: to be told so costs as much as a number.
#[derive(Debug, Default)]
pub struct Silent(Vec<u32>);

impl Silent {
    /// Those that `asked` has and that the device may have.
    fn rest(&self, asked: Asked) -> Vec<u32> {
        let is_asked = |field: &u32| asked.has(*field) && !self.0.contains(field);
        FIELDS.into_iter().filter(is_asked).collect()
    }

    /// Notes which of `fields` were not `told` and never will be.
    fn note(&mut self, fields: &[u32], told: &[Result<FieldValueSample, NvmlError>]) {
        let is_missing = |told: &Result<FieldValueSample, NvmlError>| {
            let answer = told.as_ref().map(|sample| sample.value.as_ref());
            matches!(answer, Err(NvmlError::NotSupported) | Ok(Err(NvmlError::NotSupported)))
        };
        let missing = fields.iter().zip(told).filter(|(_, told)| is_missing(told));
        self.0.extend(missing.map(|(field, _)| field));
    }
}

/// Asks for those of them that `asked` has and that are not `silent`.
///
/// # Errors
/// As the library answers for the whole call.
pub fn read(
    device: &Device<'static>,
    asked: Asked,
    silent: &mut Silent,
) -> Result<Fields, NvmlError> {
    let fields = silent.rest(asked);
    if fields.is_empty() {
        return Ok(Fields::default());
    }
    let ids: Vec<FieldId> = fields.iter().copied().map(FieldId).collect();
    let told = device.field_values_for(&ids)?;
    silent.note(&fields, &told);
    let number = |field: u32| {
        let at = fields.iter().position(|known| *known == field)?;
        // One of a kind that the wrapper does not know is missing too.
        match *told.get(at)?.as_ref().ok()?.value.as_ref().ok()? {
            SampleValue::U32(number) => Some(number.into()),
            SampleValue::U64(number) => Some(number),
            SampleValue::I64(number) => u64::try_from(number).ok(),
            SampleValue::F64(_) => None,
        }
    };
    Ok(Fields::of(number))
}

impl Fields {
    fn of(number: impl Fn(u32) -> Option<u64>) -> Self {
        let sum =
            |of: &[u32]| of.iter().filter_map(|field| number(*field)).reduce(u64::saturating_add);
        let counters = Counters {
            ecc_uncorrected: None,
            ecc_corrected: number(ECC_CORRECTED),
            pcie_replays: number(PCIE_REPLAYS),
            nvlink_errors: sum(&[
                NVLINK_CRC_FLIT,
                NVLINK_CRC_DATA,
                NVLINK_REPLAYS,
                NVLINK_RECOVERIES,
            ]),
            throttled_power_ns: counted([POWER, POWER_BRAKE].map(&number)),
            throttled_thermal_ns: counted(
                [THERMAL, SOFTWARE_THERMAL, HARDWARE_THERMAL].map(&number),
            ),
            throttled_other_ns: counted([number(SYNC_BOOST)])[0],
            pcie_sent_bytes: number(PCIE_SENT),
            pcie_received_bytes: number(PCIE_RECEIVED),
        };
        Self {
            memory_celsius: number(MEMORY_CELSIUS).filter(|celsius| *celsius > 0),
            remapped_rows: sum(&[REMAPPED_CORRECTABLE, REMAPPED_UNCORRECTABLE]),
            counters,
        }
    }
}

/// The times of a family, unless all stand at zero since the driver was loaded: nobody may count them.
fn counted<const REASONS: usize>(times_ns: [Option<u64>; REASONS]) -> [Option<u64>; REASONS] {
    let is_any = times_ns.iter().flatten().any(|ns| *ns > 0);
    if is_any { times_ns } else { [None; REASONS] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dear_or_not_there_is_not_asked_for() {
        let mut silent = Silent::default();
        let idle = Asked { is_held: false, is_due: false, of_links: false };
        let held = Asked { is_held: true, ..idle };
        let all = Asked { is_held: true, is_due: true, of_links: true };
        assert_eq!(silent.rest(all), FIELDS);
        assert!([POWER, PCIE_REPLAYS, PCIE_SENT].iter().all(|of| !silent.rest(idle).contains(of)));
        assert!(silent.rest(held).contains(&POWER) && silent.rest(idle).contains(&ECC_CORRECTED));
        let sample =
            |value| FieldValueSample { field: FieldId(POWER), timestamp: 0, latency: 0, value };
        let told = [
            Err(NvmlError::NotSupported),
            Ok(sample(Err(NvmlError::NotSupported))),
            Ok(sample(Err(NvmlError::Unknown))),
            Ok(sample(Ok(SampleValue::U64(1)))),
        ];
        silent.note(&[POWER_BRAKE, SYNC_BOOST, THERMAL, POWER], &told);
        let rest = silent.rest(held);
        let has = |field| rest.contains(&field);
        assert!(!has(POWER_BRAKE) && !has(SYNC_BOOST) && has(THERMAL) && has(POWER), "{rest:?}");
    }

    #[test]
    fn what_is_not_told_is_unknown_and_a_still_counter_no_time() {
        assert_eq!(Fields::of(|_| None), Fields::default());
        let told = |field| match field {
            POWER => Some(7),
            POWER_BRAKE => Some(9),
            THERMAL | MEMORY_CELSIUS => Some(0),
            NVLINK_REPLAYS => Some(2),
            NVLINK_CRC_FLIT => Some(3),
            REMAPPED_UNCORRECTABLE => Some(1),
            _ => None,
        };
        let Fields { memory_celsius, remapped_rows, counters } = Fields::of(told);
        assert_eq!((memory_celsius, remapped_rows), (None, Some(1)));
        let expected = Counters {
            throttled_power_ns: [Some(7), Some(9)],
            nvlink_errors: Some(5),
            ..Counters::default()
        };
        assert_eq!(counters, expected);
    }
}
