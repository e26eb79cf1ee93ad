//! Why the simulator stopped, in words that no `CUresult` has.

use super::codes::Code;
use crate::machine::{FaultKind, Site, Stop};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopKind {
    /// `trap` or a failed assertion in a kernel.
    Trap,
    /// A wrong access, or an instruction whose operands have no meaning.
    Fault,
    /// Nobody can go on.
    Deadlock,
    /// The step budget is used up.
    Budget,
    /// Something that the simulator cannot do.
    Unsupported,
    /// The driver could not start what was queued.
    Error,
}

/// The last stop.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// Which.
    pub kind: StopKind,
    /// In words: kernel, PTX line, source line, block and thread as far as there are any.
    pub message: String,
    /// The place alone.
    pub site: Option<Site>,
    /// The address of a fault in a kernel.
    pub address: Option<u64>,
}

impl Diagnosis {
    pub(super) fn of_stop(stop: &Stop) -> Diagnosis {
        let kind = match stop {
            Stop::Trap { .. } | Stop::Assert { .. } => StopKind::Trap,
            Stop::Fault { .. } => StopKind::Fault,
            Stop::Deadlock { .. } => StopKind::Deadlock,
            Stop::Budget { .. } => StopKind::Budget,
            Stop::Unsupported { .. } => StopKind::Unsupported,
        };
        Diagnosis {
            kind,
            message: stop.to_string(),
            site: stop.site().cloned(),
            address: match stop {
                Stop::Fault { address, .. } => Some(*address),
                _ => None,
            },
        }
    }

    pub(super) fn fault(message: String) -> Diagnosis {
        Diagnosis {
            kind: StopKind::Fault,
            message,
            site: None,
            address: None,
        }
    }

    pub(super) fn deadlock(message: String) -> Diagnosis {
        Diagnosis {
            kind: StopKind::Deadlock,
            message,
            site: None,
            address: None,
        }
    }

    pub(super) fn error(message: String) -> Diagnosis {
        Diagnosis {
            kind: StopKind::Error,
            message,
            site: None,
            address: None,
        }
    }
}

/// What a GPU would answer.
pub(super) fn code_of(stop: &Stop) -> Code {
    match stop {
        Stop::Trap { .. } => Code::LAUNCH_FAILED,
        Stop::Assert { .. } => Code::ASSERT,
        Stop::Fault { kind, address, .. } => match kind {
            FaultKind::Misaligned => Code::MISALIGNED_ADDRESS,
            FaultKind::StackOverflow => Code::HARDWARE_STACK_ERROR,
            // What is no multiple of an instruction's size is no address at all to the fetch unit.
            FaultKind::BadTarget if address % 16 != 0 => Code::INVALID_PC,
            FaultKind::Mbarrier
            | FaultKind::ClusterBlockGone
            | FaultKind::DivergentBarrier
            | FaultKind::ExitedWarps => Code::LAUNCH_FAILED,
            FaultKind::IllegalInstruction | FaultKind::Barrier => Code::ILLEGAL_INSTRUCTION,
            FaultKind::WrongSpace => Code::INVALID_ADDRESS_SPACE,
            FaultKind::OutOfBounds
            | FaultKind::NoAccess
            | FaultKind::Multicast
            | FaultKind::SharedOutOfBounds
            | FaultKind::LocalOutOfBounds
            | FaultKind::BadTarget
            | FaultKind::ReadOnly => Code::ILLEGAL_ADDRESS,
        },
        Stop::Deadlock { .. } | Stop::Budget { .. } => Code::LAUNCH_TIMEOUT,
        Stop::Unsupported { .. } => Code::ILLEGAL_INSTRUCTION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_have_the_codes_of_a_gpu() {
        let site = || {
            Box::new(Site {
                kernel: "k".into(),
                function: "k".into(),
                ptx_line: 7,
                ..Site::default()
            })
        };
        let fault = |kind| Stop::Fault {
            site: site(),
            kind,
            address: 16,
            detail: String::new(),
        };
        let cases = [
            (Stop::Trap { site: site() }, 719, StopKind::Trap),
            (
                Stop::Assert {
                    site: site(),
                    message: "x".into(),
                },
                710,
                StopKind::Trap,
            ),
            (fault(FaultKind::OutOfBounds), 700, StopKind::Fault),
            (fault(FaultKind::Misaligned), 716, StopKind::Fault),
            (fault(FaultKind::IllegalInstruction), 715, StopKind::Fault),
            (fault(FaultKind::Mbarrier), 719, StopKind::Fault),
            (fault(FaultKind::BadTarget), 700, StopKind::Fault),
            (
                Stop::Deadlock {
                    device: 0,
                    description: "d".into(),
                },
                702,
                StopKind::Deadlock,
            ),
            (
                Stop::Budget {
                    description: "b".into(),
                },
                702,
                StopKind::Budget,
            ),
            (
                Stop::Unsupported {
                    site: site(),
                    what: "w".into(),
                },
                715,
                StopKind::Unsupported,
            ),
        ];
        for (stop, code, kind) in cases {
            assert_eq!(code_of(&stop).0, code, "{stop}");
            let diagnosis = Diagnosis::of_stop(&stop);
            assert_eq!(diagnosis.kind, kind, "{stop}");
            assert_eq!(diagnosis.message, stop.to_string());
        }
    }
}
