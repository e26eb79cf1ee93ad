//! What is known of a tensor: element type, shape, memory.

use super::attr::Attrs;
use std::borrow::Cow;

/// Kind of memory, by the run time's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemType(pub u32);

impl MemType {
    /// Unspecified.
    pub const DEFAULT: MemType = MemType(0);
    /// Device memory.
    pub const HBM: MemType = MemType(2);
    /// Host or device DDR.
    pub const DDR: MemType = MemType(4);
    /// Memory that other devices can reach.
    pub const P2P: MemType = MemType(0x11);
    /// The task scheduler's memory.
    pub const TS: MemType = MemType(0x40);

    /// Anything but the ordinary kinds: such an anchor can only share with its own kind.
    pub fn is_special(self) -> bool {
        !matches!(self, MemType::DEFAULT | MemType::HBM | MemType::DDR)
    }

    /// The name in the JSON form, if it has one.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            MemType::HBM => "hbm",
            MemType::DDR => "ddr",
            MemType::P2P => "p2p",
            MemType::TS => "ts",
            _ => return None,
        })
    }

    /// For messages.
    pub fn word(self) -> String {
        self.name()
            .map_or_else(|| format!("type {:#x}", self.0), str::to_owned)
    }

    /// From the JSON form's name.
    pub fn from_name(name: &str) -> Option<MemType> {
        Some(match name {
            "hbm" => MemType::HBM,
            "default" => MemType::DEFAULT,
            "ddr" => MemType::DDR,
            "p2p" => MemType::P2P,
            "ts" => MemType::TS,
            _ => return None,
        })
    }
}

/// An input's or output's tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Desc {
    /// Element type.
    pub dtype: Cow<'static, str>,
    /// Dimensions (negative: not known); `None` is the default `[1]`.
    pub shape: Option<Box<[i64]>>,
    /// Bytes, where the file says so.
    pub size: Option<i64>,
    /// Offset in the memory plan.
    pub offset: Option<i64>,
    /// Memory.
    pub mem_type: MemType,
    /// Of an output: the input whose memory it reuses.
    pub reuse_input: Option<u32>,
    /// Attributes.
    pub attrs: Attrs,
}

impl Default for Desc {
    fn default() -> Self {
        Desc {
            dtype: Cow::Borrowed("float32"),
            shape: None,
            size: None,
            offset: None,
            mem_type: MemType::HBM,
            reuse_input: None,
            attrs: Attrs::default(),
        }
    }
}

/// Element types with their size in bytes.
const DTYPES: &[(&str, u32)] = &[
    ("float32", 4),
    ("float16", 2),
    ("bfloat16", 2),
    ("float64", 8),
    ("double", 8),
    ("float", 4),
    ("int8", 1),
    ("uint8", 1),
    ("int16", 2),
    ("uint16", 2),
    ("int32", 4),
    ("uint32", 4),
    ("int64", 8),
    ("uint64", 8),
    ("bool", 1),
    ("complex64", 8),
    ("complex128", 16),
    ("DT_FLOAT", 4),
    ("DT_FLOAT16", 2),
    ("DT_INT8", 1),
    ("DT_UINT8", 1),
    ("DT_INT16", 2),
    ("DT_UINT16", 2),
    ("DT_INT32", 4),
    ("DT_INT64", 8),
    ("DT_UINT32", 4),
    ("DT_UINT64", 8),
    ("DT_BOOL", 1),
    ("DT_DOUBLE", 8),
    ("DT_BF16", 2),
    ("DT_COMPLEX64", 8),
    ("DT_COMPLEX128", 16),
];

impl Desc {
    /// The name of an element type without an allocation where it is a known one.
    pub fn dtype_from(name: &str) -> Cow<'static, str> {
        match DTYPES.iter().find(|(n, _)| *n == name) {
            Some((n, _)) => Cow::Borrowed(n),
            None => Cow::Owned(name.to_owned()),
        }
    }

    /// Whether the element type is one whose size is known.
    pub fn has_known_dtype(&self) -> bool {
        matches!(self.dtype, Cow::Borrowed(_)) || DTYPES.iter().any(|(n, _)| *n == self.dtype)
    }

    /// The dimensions.
    pub fn dims(&self) -> &[i64] {
        self.shape.as_deref().unwrap_or(&[1])
    }

    /// Whether a dimension or the rank is not known.
    pub fn is_unknown(&self) -> bool {
        self.dims().iter().any(|d| *d < 0)
    }

    /// Whether there is not a single element.
    pub fn is_empty_tensor(&self) -> bool {
        self.dims().contains(&0)
    }

    /// Size in bytes, if it can be told.
    pub fn bytes(&self) -> Option<i64> {
        if let Some(s) = self.size.filter(|s| *s >= 0) {
            return Some(s);
        }
        let (_, width) = DTYPES.iter().find(|(n, _)| *n == self.dtype)?;
        self.dims().iter().try_fold(i64::from(*width), |a, d| {
            if *d < 0 { None } else { a.checked_mul(*d) }
        })
    }
}
