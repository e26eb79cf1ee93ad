//! Runs kernels, one after the other, until one leaves the context broken.

use crate::data::{self, Argument, Rule};
use crate::device::{Buffer, Device};
use crate::kernel::{Kernel, Map};
use crate::parent::MARK;
use crate::results::{Contents, Outcome, write_one};
use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Runs the kernels with the numbers from `first` to `last`. The results are appended one by one.
pub fn run(kernels: &[Kernel], out: &Path, first: usize, last: usize) -> Result<bool> {
    let mut file = OpenOptions::new().create(true).append(true).open(out)?;
    let mut device = Device::new()?;
    writeln!(file, "device {}", device.name)?;
    for kernel in kernels
        .iter()
        .filter(|k| (first..=last).contains(&k.number))
    {
        println!("{MARK}{}", kernel.name);
        std::io::stdout().flush()?;
        let (outcome, usable) = one(&mut device, kernel).context(kernel.name.clone())?;
        let mut text = String::new();
        write_one(&outcome, &mut text);
        file.write_all(text.as_bytes())?;
        if !usable {
            return Ok(false);
        }
    }
    Ok(true)
}

fn one(device: &mut Device, kernel: &Kernel) -> Result<(Outcome, bool)> {
    let mut outcome = Outcome {
        name: kernel.name.clone(),
        ..Outcome::default()
    };
    let module = match device.load(&kernel.ptx) {
        Ok(module) => module,
        Err((code, log)) => {
            eprintln!("{}: not loaded: {code}: {log}", kernel.name);
            outcome.end = format!("load {code}");
            return Ok((outcome, true));
        }
    };
    let mut buffers: Vec<(Buffer, Rule)> = Vec::new();
    let mut arguments = Vec::new();
    for word in &kernel.launch.args {
        let argument = data::parse(word)?;
        if let Argument::Buffer(bytes, rule) = &argument {
            buffers.push((device.buffer(bytes)?, *rule));
        }
        if let Argument::Symbol { name, offset, len } = &argument {
            let address = device.symbol(module, name)?.wrapping_add(*offset);
            let mut bytes = address.to_le_bytes().to_vec();
            bytes.resize(*len, 0);
            buffers.push((device.buffer(&bytes)?, Rule::Ignored));
        }
        arguments.push(argument);
    }
    let mut maps = Vec::new();
    for map in &kernel.launch.map {
        let (bytes, rule) = tensor(map)?;
        let buffer = device.buffer(&bytes)?;
        let encoded = match device.tensor_map(map, buffer.address)? {
            Ok(encoded) => encoded,
            Err(code) => {
                outcome.end = format!("map {code}");
                return Ok((outcome, true));
            }
        };
        let copy = device.buffer(&encoded)?;
        maps.push((encoded, copy, buffer.address));
        buffers.push((buffer, rule));
    }
    let mut own = buffers.iter().map(|(b, _)| b.address);
    let mut values = Vec::new();
    for argument in arguments {
        let map = |n: usize| maps.get(n).context("no such tensor map");
        values.push(match argument {
            Argument::Value(bytes) => bytes,
            Argument::Buffer(..) | Argument::Symbol { .. } => {
                own.next().unwrap_or(0).to_le_bytes().to_vec()
            }
            Argument::Map(n) => map(n)?.0.clone(),
            Argument::MapAddress(n) => map(n)?.1.address.to_le_bytes().to_vec(),
            Argument::MapData(n) => map(n)?.2.to_le_bytes().to_vec(),
        });
    }
    let code = device.launch(module, &kernel.launch, &mut values)?;
    outcome.end = code.to_string();
    if code != 0 {
        if let Some(why) = cuda_lazy::diagnosis() {
            eprintln!("{}: {}", kernel.name, why.message);
            outcome.why = why.message;
        }
        return Ok((outcome, false));
    }
    let whole = std::env::var_os("GSAN_DIFFER_WHOLE").is_some();
    let mut written = buffers.is_empty();
    for (number, (buffer, rule)) in buffers.iter().enumerate() {
        let bytes = device.read(buffer)?;
        written |= bytes != buffer.before;
        if *rule != Rule::Ignored {
            outcome
                .buffers
                .push(Contents::of(number, &bytes, *rule, whole));
        }
        device.free(buffer);
    }
    if !written {
        eprintln!("{}: nothing was written", kernel.name);
    }
    for (_, copy, _) in &maps {
        device.free(copy);
    }
    device.unload(module);
    Ok((outcome, true))
}

fn tensor(map: &Map) -> Result<(Vec<u8>, Rule)> {
    match data::parse(&map.data)? {
        Argument::Buffer(bytes, rule) => Ok((bytes, rule)),
        _ => anyhow::bail!("`{}` is no buffer", map.data),
    }
}
