//! The TOML of a scenario file as serde sees it. Unknown keys are refused here; meaning is [`super::parse`]'s affair.

use super::model::{Memory, StreamFlags};
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    pub name: Option<String>,
    #[serde(default)]
    pub device: Device,
    #[serde(default)]
    pub module: Vec<Spanned<Module>>,
    #[serde(default)]
    pub buffer: Vec<Spanned<Buffer>>,
    #[serde(default)]
    pub stream: Vec<Spanned<Stream>>,
    #[serde(default)]
    pub graph: Vec<Spanned<Graph>>,
    #[serde(default)]
    pub step: Vec<Spanned<Step>>,
    pub expect: Option<Expect>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    pub sms: Option<Spanned<u32>>,
    pub devices: Option<Spanned<u32>>,
    pub blocks_per_sm: Option<Spanned<u32>>,
    pub slots_per_sm: Option<Spanned<u32>>,
    pub clock_buffer_size: Option<Spanned<u32>>,
    pub timeout: Option<Spanned<u32>>,
    pub cell: Option<Spanned<String>>,
    #[serde(default)]
    pub sc_order: bool,
    pub memory: Option<Spanned<String>>,
    pub schedule: Option<Spanned<String>>,
    pub exited_warps: Option<Spanned<String>>,
    #[serde(default)]
    pub classes_off: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Module {
    pub name: Option<Spanned<String>>,
    pub path: Option<Spanned<String>>,
    pub ptx: Option<Spanned<String>>,
    #[serde(default)]
    pub link: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Buffer {
    pub name: Spanned<String>,
    #[serde(rename = "type")]
    pub ty: Spanned<String>,
    pub len: Spanned<u64>,
    pub init: Option<Spanned<String>>,
    pub device: Option<Spanned<u32>>,
    pub devices: Option<Spanned<Vec<Spanned<u32>>>>,
    #[serde(default)]
    pub memory: Memory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stream {
    pub name: Spanned<String>,
    #[serde(default)]
    pub flags: StreamFlags,
    pub device: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Graph {
    pub name: Spanned<String>,
    #[serde(default)]
    pub node: Vec<Spanned<Step>>,
}

/// Every key that any kind of step, or of node in a graph, has; which belong together is checked later.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub launch: Option<Spanned<String>>,
    pub record: Option<Spanned<String>>,
    pub wait: Option<Spanned<String>>,
    pub synchronize: Option<Spanned<String>>,
    pub memset: Option<Spanned<String>>,
    pub copy: Option<Spanned<Copy>>,
    pub read_back: Option<Spanned<String>>,
    pub free: Option<Spanned<String>>,
    pub allocate: Option<Spanned<String>>,
    pub query: Option<Spanned<String>>,
    pub forget: Option<Spanned<String>>,
    pub graph: Option<Spanned<String>>,
    pub capture: Option<Spanned<String>>,
    pub end_capture: Option<Spanned<String>>,
    pub empty: Option<Spanned<bool>>,

    pub name: Option<Spanned<String>>,
    pub after: Option<Vec<Spanned<String>>>,

    pub stream: Option<Spanned<String>>,
    pub module: Option<Spanned<String>>,
    pub grid: Option<Spanned<Dims>>,
    pub block: Option<Spanned<Dims>>,
    pub cluster: Option<Spanned<Dims>>,
    pub shared: Option<Spanned<u32>>,
    pub cooperative: Option<Spanned<bool>>,
    pub pdl: Option<Spanned<bool>>,
    pub args: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    pub value: Option<Spanned<toml::Value>>,
    pub bytes: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Copy {
    pub from: Spanned<String>,
    pub to: Spanned<String>,
    pub bytes: Option<Spanned<u64>>,
}

/// `[X]`, `[X, Y]`, `[X, Y, Z]`.
pub(super) type Dims = Vec<u32>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    pub schedules: Option<Spanned<u32>>,
    pub outcome: Option<Spanned<String>>,
    pub message: Option<String>,
    /// `[]`: none. Entries may also stand here in line.
    pub races: Option<Spanned<Vec<Spanned<Race>>>>,
    #[serde(default)]
    pub race: Vec<Spanned<Race>>,
    #[serde(default)]
    pub value: Vec<Spanned<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Race {
    pub kind: Option<Spanned<toml::Value>>,
    pub class: Option<Spanned<toml::Value>>,
    pub buffer: Option<Spanned<String>>,
    pub offset: Option<u64>,
    pub kernel: Option<String>,
    pub line: Option<Spanned<toml::Value>>,
    pub prior_line: Option<u32>,
    pub min_schedules: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Value {
    pub buffer: Spanned<String>,
    pub values: Spanned<Vec<Spanned<toml::Value>>>,
}
