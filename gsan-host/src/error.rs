//! What can go wrong, and what to do about it.

use crate::request::{EventId, GraphId, ModuleId, StreamId};

/// An error of the host side.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver refused a call. After such an error in a launch or a wait, [`crate::Session::finish`] still returns the
    /// report with what was found.
    #[error("{call} failed: {name} ({code}), {description}{}", .detail.as_deref().map(|d| format!("\n{d}")).unwrap_or_default())]
    Driver {
        /// The driver function.
        call: &'static str,
        /// `CUresult`.
        code: u32,
        /// Its name, as in `CUDA_ERROR_INVALID_VALUE`.
        name: String,
        /// The driver's sentence on it.
        description: String,
        /// What the simulator says beyond the code.
        detail: Option<String>,
    },
    /// No such device.
    #[error(
        "there is no device {wanted}: the driver knows {count}, numbered from 0; choose one of them, or `--device sim`"
    )]
    NoSuchDevice {
        /// The number.
        wanted: u32,
        /// How many there are.
        count: u32,
    },
    /// The builder's values don't fit together.
    #[error("{0}")]
    Configuration(String),
    /// The PTX can't be parsed.
    #[error("{message}")]
    Syntax {
        /// File, line and column, what is wrong, and the line.
        message: String,
    },
    /// The PTX can't be instrumented.
    #[error("{module}: {message}")]
    Instrument {
        /// The module's name.
        module: String,
        /// Where and why.
        message: String,
    },
    /// The driver's compiler refused the module.
    #[error("{module}: the driver's compiler refused the {}module: {name}\n{log}", if *.instrumented { "instrumented " } else { "" })]
    Load {
        /// The module's name.
        module: String,
        /// `CUresult`'s name.
        name: String,
        /// The JIT's error log.
        log: String,
        /// Whether it was the instrumented text; then `--no-instrument` tells whether the user's own is at fault.
        instrumented: bool,
    },
    /// No such kernel.
    #[error("{module} has no kernel `{kernel}`; {}", list_kernels(.known))]
    UnknownKernel {
        /// The module's name.
        module: String,
        /// What was asked for.
        kernel: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The argument list does not fit the kernel.
    #[error("wrong arguments for `{kernel}`: {what}; it takes {signature}")]
    Arguments {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        what: String,
        /// Its parameters.
        signature: String,
    },
    /// The launch cannot run, with or without instrumentation.
    #[error("`{kernel}` cannot be launched like this: {what}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// Why, with the numbers.
        what: String,
    },
    /// The buffer does not fit on the device.
    #[error(
        "a buffer of {bytes} bytes does not fit: with its shadow ({factor} times its size) it needs {needed} bytes and the device has \
         {free} bytes free; make it smaller than {} bytes{}", .free / (1 + .factor),
         if .bytes <= .free { ", free others, or run with --no-instrument" } else { "" }
    )]
    BufferTooLarge {
        /// Bytes asked for.
        bytes: u64,
        /// Bytes of shadow per byte.
        factor: u64,
        /// With shadow.
        needed: u64,
        /// Free on the device.
        free: u64,
    },
    /// The buffer does not fit on the device; it would have no shadow.
    #[error("a buffer of {bytes} bytes does not fit: {free} bytes are free")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
        /// Free on the device.
        free: u64,
    },
    /// The address range of the reservation is used up.
    #[error(
        "a buffer of {bytes} bytes does not fit into the reservation: the largest free range has {largest} bytes"
    )]
    ReservationFull {
        /// Bytes asked for.
        bytes: u64,
        /// Largest free range.
        largest: u64,
    },
    /// Size zero.
    #[error("a buffer needs at least one byte")]
    EmptyBuffer,
    /// Not the start of a live buffer.
    #[error("0x{address:x} is not the start of a live buffer{}", .inside.as_deref().map(|n| format!(": it lies inside `{n}`")).unwrap_or_else(|| " (was it freed before?)".into()))]
    NotABuffer {
        /// The address.
        address: u64,
        /// The buffer that it lies in.
        inside: Option<String>,
    },
    /// Reading or writing beyond a buffer.
    #[error("{bytes} bytes at 0x{address:x} do not lie in one live buffer")]
    OutOfBounds {
        /// First byte.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A module of another session.
    #[error("module {} is not one of this session", .0.number())]
    UnknownModule(ModuleId),
    /// A stream of another session.
    #[error("stream {} is not one of this session", .0.number())]
    UnknownStream(StreamId),
    /// An event of another session.
    #[error("event {} is not one of this session", .0.number())]
    UnknownEvent(EventId),
    /// A graph of another session.
    #[error("graph {} is not one of this session", .0.number())]
    UnknownGraph(GraphId),
    /// A graph that cannot be.
    #[error("wrong graph: {0}")]
    Graph(String),
    /// A read of another session, or one that was already taken.
    #[error("this read was already taken")]
    UnknownRead,
    /// Runtime and host were built from different sources.
    #[error(
        "the runtime's PTX has layout version {found}, this program {expected}: run `cargo xtask ptx` and build again"
    )]
    LayoutVersion {
        /// In the module.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// A module that links the detector in keeps other cells than the session.
    #[error(
        "this module links gsan's detector in, built for other shadow cells than `{wanted}`: run without another cell format, or \
         build the module with the matching feature of gsan-device"
    )]
    OtherCellFormat {
        /// The session's.
        wanted: &'static str,
    },
    /// An earlier session's kernel has faulted or trapped.
    #[error(
        "an earlier kernel of this process ended in a fault or trap, and the driver lets the process use that GPU no more ({name}): \
         start the program again"
    )]
    DeviceLost {
        /// `CUresult`'s name.
        name: String,
    },
    /// An earlier error ended the context.
    #[error("an earlier error ended the run; only `finish` is left")]
    Ended,
}

/// Whose fault an error is: decides the program's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input or the request is wrong: nothing ran because of it.
    Input,
    /// The run itself failed.
    Run,
}

impl Error {
    /// Whether the request was wrong, or the run failed.
    pub fn kind(&self) -> ErrorKind {
        match self {
            // There is no device, or the driver cannot be started: nothing ran.
            Error::Driver { call: "cuInit", .. } => ErrorKind::Input,
            Error::Driver { .. }
            | Error::Ended
            | Error::DeviceLost { .. }
            | Error::LayoutVersion { .. } => ErrorKind::Run,
            _ => ErrorKind::Input,
        }
    }
}

/// A result of the host side.
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn list_kernels(known: &[String]) -> String {
    const SHOWN: usize = 20;
    match known.len() {
        0 => "it has no kernel at all (.entry)".to_string(),
        n if n <= SHOWN => format!("it has: {}", known.join(", ")),
        n => format!(
            "it has: {}, and {} more",
            known[..SHOWN].join(", "),
            n - SHOWN
        ),
    }
}
