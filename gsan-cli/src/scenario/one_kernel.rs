//! The one-kernel form, `gsan run FILE.ptx --kernel …`, as a [`Scenario`] of one step.

use super::model::*;
use super::parse::check_length;
use crate::element::{ElementType, Init, Number};
use crate::failure::{Failure, Result};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// `X[,Y[,Z]]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims(pub [u32; 3]);

impl FromStr for Dims {
    type Err = String;

    fn from_str(s: &str) -> std::result::Result<Self, String> {
        let mut dims = [1; 3];
        for (at, part) in s.split(',').enumerate() {
            let number: u32 = part
                .trim()
                .parse()
                .map_err(|_| format!("`{part}` is not a number"))?;
            if number == 0 {
                return Err("each dimension is at least 1".into());
            }
            *dims.get_mut(at).ok_or("at most three dimensions: X,Y,Z")? = number;
        }
        Ok(Dims(dims))
    }
}

/// `--arg`
#[derive(Debug, Clone, PartialEq)]
pub enum ArgSpec {
    /// `u32=5`
    Scalar(ElementType, Number),
    /// `buf:TYPE[LEN]=INIT`
    Buffer(ElementType, u64, Init),
}

impl FromStr for ArgSpec {
    type Err = String;

    fn from_str(s: &str) -> std::result::Result<Self, String> {
        if let Some(rest) = s.strip_prefix("buf:") {
            let (shape, init) = match rest.split_once('=') {
                Some((shape, init)) => (shape, init.parse()?),
                None => (rest, Init::Zero),
            };
            let (ty, len) = shape
                .strip_suffix(']')
                .and_then(|s| s.split_once('['))
                .ok_or("a buffer is written buf:TYPE[LEN], with an optional =INIT")?;
            let ty: ElementType = ty.parse()?;
            let len = match len.parse() {
                Ok(Number::Int(n)) => {
                    u64::try_from(n).map_err(|_| format!("`{len}` is not a length"))?
                }
                _ => return Err(format!("`{len}` is not a length")),
            };
            check_length(len, ty)?;
            init.check(ty)?;
            return Ok(ArgSpec::Buffer(ty, len, init));
        }
        let (ty, value) = s.split_once('=').ok_or_else(|| {
            format!("`{s}` is neither TYPE=VALUE (u32=5) nor a buffer (buf:u32[64]=iota)")
        })?;
        let ty: ElementType = ty.parse()?;
        let number: Number = value.parse()?;
        ty.encode(number)?;
        Ok(ArgSpec::Scalar(ty, number))
    }
}

/// `--print ARG[:N]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintSpec {
    /// An argument's number or a buffer's name.
    pub what: String,
    /// How many elements; all without it.
    pub count: Option<u64>,
}

impl FromStr for PrintSpec {
    type Err = String;

    fn from_str(s: &str) -> std::result::Result<Self, String> {
        let (what, count) = match s.split_once(':') {
            Some((what, n)) => (
                what,
                Some(
                    n.parse()
                        .map_err(|_| format!("`{n}` is not a number of elements"))?,
                ),
            ),
            None => (s, None),
        };
        if what.is_empty() {
            return Err("it is ARG or ARG:N".into());
        }
        Ok(PrintSpec {
            what: what.to_string(),
            count,
        })
    }
}

impl PrintSpec {
    /// The buffer that is meant: by name, or as the launch's argument of that number.
    pub fn find(&self, scenario: &Scenario) -> Result<usize> {
        if let Some(at) = scenario.buffers.iter().position(|b| b.name == self.what) {
            return Ok(at);
        }
        let names: Vec<&str> = scenario.buffers.iter().map(|b| b.name.as_str()).collect();
        let only_launch = match scenario.steps.as_slice() {
            [
                Step {
                    action: Action::Launch(launch),
                    ..
                },
            ] => Some(launch),
            _ => None,
        };
        if let (Some(launch), Ok(number)) = (only_launch, self.what.parse::<usize>()) {
            return match launch.args.get(number) {
                Some(Arg::Buffer(at)) => Ok(at.buffer),
                Some(Arg::Scalar { .. } | Arg::Tensor(_)) => Err(Failure::input(format_args!(
                    "--print {number}: argument {number} is not a buffer"
                ))),
                None => Err(Failure::input(format_args!(
                    "--print {number}: there are {} arguments, numbered from 0",
                    launch.args.len()
                ))),
            };
        }
        let known = if names.is_empty() {
            "there is none".into()
        } else {
            format!("there are: {}", names.join(", "))
        };
        Err(Failure::input(format_args!(
            "--print {}: no such buffer; {known}",
            self.what
        )))
    }
}

/// The options of the one-kernel form.
#[derive(Debug, Clone, Default)]
pub struct OneKernel<'a> {
    /// `--kernel`
    pub kernel: Option<&'a str>,
    /// `--grid`
    pub grid: Option<Dims>,
    /// `--block`
    pub block: Option<Dims>,
    /// `--cluster`
    pub cluster: Option<Dims>,
    /// `--shared`
    pub shared: Option<u32>,
    /// `--arg`
    pub args: &'a [ArgSpec],
    /// Further modules on the command line.
    pub link: &'a [PathBuf],
}

impl OneKernel<'_> {
    /// The first option that is there, for scenarios, which take none of them.
    pub fn any(&self) -> Option<&'static str> {
        [
            ("--kernel", self.kernel.is_some()),
            ("--grid", self.grid.is_some()),
            ("--block", self.block.is_some()),
            ("--cluster", self.cluster.is_some()),
            ("--shared", self.shared.is_some()),
            ("--arg", !self.args.is_empty()),
            ("a second file", !self.link.is_empty()),
        ]
        .into_iter()
        .find_map(|(name, there)| there.then_some(name))
    }

    /// The scenario: one module, one buffer per buffer argument, one launch in the default stream.
    pub fn scenario(&self, file: &Path) -> Result<Scenario> {
        let missing = |name: &str| {
            Failure::input(format_args!(
                "{}: a PTX module needs {name}; only a scenario (a name that ends in .toml) goes without",
                file.display()
            ))
        };
        let kernel = self.kernel.ok_or_else(|| missing("--kernel NAME"))?;
        let grid = self.grid.ok_or_else(|| missing("--grid X[,Y[,Z]]"))?.0;
        let block = self.block.ok_or_else(|| missing("--block X[,Y[,Z]]"))?.0;
        let mut buffers = Vec::new();
        let mut args = Vec::new();
        for (number, spec) in self.args.iter().enumerate() {
            args.push(match spec {
                ArgSpec::Scalar(ty, value) => Arg::Scalar {
                    ty: *ty,
                    bytes: ty.encode(*value).map_err(Failure::input)?,
                },
                ArgSpec::Buffer(ty, len, init) => {
                    buffers.push(Buffer {
                        name: format!("arg{number}"),
                        ty: *ty,
                        len: *len,
                        init: init.clone(),
                        device: 0,
                        memory: Memory::Device,
                        devices: Vec::new(),
                        line: 0,
                    });
                    Arg::Buffer(BufferRef {
                        buffer: buffers.len() - 1,
                        offset: 0,
                    })
                }
            });
        }
        let launch = Launch {
            kernel: kernel.to_string(),
            module: 0,
            grid,
            block,
            cluster: self.cluster.map(|c| c.0),
            shared: self.shared.unwrap_or(0),
            cooperative: false,
            pdl: false,
            args,
        };
        let name = file
            .file_name()
            .map_or_else(|| "module".into(), |n| n.to_string_lossy().into_owned());
        Ok(Scenario {
            name: kernel.to_string(),
            file: file.to_path_buf(),
            device: DeviceShape::default(),
            classes_off: Vec::new(),
            timeout: None,
            modules: vec![Module {
                name,
                source: ModuleSource::File(file.to_path_buf()),
                link: self.link.to_vec(),
                line: 0,
                text_line: 0,
            }],
            buffers,
            streams: Vec::new(),
            events: Vec::new(),
            graphs: Vec::new(),
            steps: vec![Step {
                line: 0,
                stream: None,
                action: Action::Launch(launch),
            }],
            expect: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dims_of_one_to_three_numbers() {
        assert_eq!("4".parse(), Ok(Dims([4, 1, 1])));
        assert_eq!("4,2".parse(), Ok(Dims([4, 2, 1])));
        assert_eq!("4, 2, 3".parse(), Ok(Dims([4, 2, 3])));
        for bad in ["", "0", "1,0", "1,2,3,4", "x", "-1", "1,", "4294967296"] {
            assert!(bad.parse::<Dims>().is_err(), "{bad}");
        }
    }

    #[test]
    fn arguments_as_the_specification_writes_them() {
        assert_eq!(
            "u32=5".parse(),
            Ok(ArgSpec::Scalar(ElementType::U32, Number::Int(5)))
        );
        assert_eq!(
            "i32=-1".parse(),
            Ok(ArgSpec::Scalar(ElementType::I32, Number::Int(-1)))
        );
        assert_eq!(
            "f32=1.5".parse(),
            Ok(ArgSpec::Scalar(ElementType::F32, Number::Float(1.5)))
        );
        assert_eq!(
            "f64=2".parse(),
            Ok(ArgSpec::Scalar(ElementType::F64, Number::Int(2)))
        );
        let buffer = |ty, len, init| Ok(ArgSpec::Buffer(ty, len, init));
        assert_eq!("buf:u8[3]".parse(), buffer(ElementType::U8, 3, Init::Zero));
        assert_eq!(
            "buf:f32[0x10]=fill:-0.5".parse(),
            buffer(ElementType::F32, 16, Init::Fill(Number::Float(-0.5)))
        );
        assert_eq!(
            "buf:i64[9]=rand:7".parse(),
            buffer(ElementType::I64, 9, Init::Rand(7))
        );
        assert_eq!(
            "buf:u32[9]=@x=y[1].bin".parse(),
            buffer(ElementType::U32, 9, Init::File("x=y[1].bin".into()))
        );
    }

    #[test]
    fn wrong_arguments_are_refused_with_a_reason() {
        for bad in [
            "",
            "5",
            "u32",
            "u32=",
            "u32=-1",
            "u32=1.5",
            "u8=256",
            "q=1",
            "buf:",
            "buf:u32",
            "buf:u32[",
            "buf:u32[]",
            "buf:u32[0]",
            "buf:u32[-1]",
            "buf:u32[1]=",
            "buf:u32[1]=ones",
            "buf:u8[1]=fill:300",
            "buf:x[1]",
            "buf:u32[1]x",
            "buf:u64[0xffffffffffffffff]",
        ] {
            assert!(bad.parse::<ArgSpec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn print_finds_arguments_by_number_and_name() {
        let args = ["u32=1".parse().unwrap(), "buf:u32[4]".parse().unwrap()];
        let one = OneKernel {
            kernel: Some("k"),
            grid: Some(Dims([1, 1, 1])),
            block: Some(Dims([1, 1, 1])),
            args: &args,
            ..Default::default()
        };
        let scenario = one.scenario(Path::new("k.ptx")).unwrap();
        let find = |s: &str| s.parse::<PrintSpec>().unwrap().find(&scenario);
        assert_eq!(find("1"), Ok(0));
        assert_eq!(find("arg1:3"), Ok(0));
        assert!(find("0").unwrap_err().message.contains("not a buffer"));
        assert!(find("2").unwrap_err().message.contains("numbered from 0"));
        assert!(find("x").unwrap_err().message.contains("arg1"));
        for bad in ["", ":3", "1:x", "1:"] {
            assert!(bad.parse::<PrintSpec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_module_needs_its_launch_options() {
        let error = OneKernel::default()
            .scenario(Path::new("k.ptx"))
            .unwrap_err();
        assert_eq!(error.code, 2);
        assert!(error.message.contains("--kernel"), "{}", error.message);
    }
}
