//! Multicast buffers: one address, and a buffer of its own on each device.

use super::super::model::{Buffer, Memory};
use super::Resolver;
use crate::failure::Result;
use std::ops::Range;
use toml::Spanned;

/// Adds the buffer; a multicast one with its parts behind it, `NAME.DEVICE`.
pub(super) fn declare(
    r: &mut Resolver<'_>,
    buffer: Buffer,
    devices: &Option<Spanned<Vec<Spanned<u32>>>>,
    span: &Range<usize>,
) -> Result<()> {
    if buffer.memory != Memory::Multicast {
        if let Some(devices) = devices {
            let message =
                "`devices` is for `memory = \"multicast\"`; other buffers have one `device`";
            return Err(r.place.error(&devices.span(), message));
        }
        r.scenario.buffers.push(buffer);
        return Ok(());
    }
    let mut team = Vec::new();
    for device in devices.iter().flat_map(|list| list.get_ref()) {
        let number = r.device_number(&Some(device.clone()))?;
        if team.contains(&number) {
            let message = format!("device {number} is there already");
            return Err(r.place.error(&device.span(), message));
        }
        team.push(number);
    }
    if team.is_empty() {
        let message = "a multicast buffer needs `devices`, as in [0, 1]";
        return Err(r.place.error(span, message));
    }
    let mut parts = Vec::new();
    for device in &team {
        let name = format!("{}.{device}", buffer.name);
        if r.buffer_named(&name).is_some() {
            let message = format!(
                "there is a buffer `{name}` already, which is what this one is called on device {device}"
            );
            return Err(r.place.error(span, message));
        }
        parts.push(Buffer {
            name,
            device: *device,
            memory: Memory::Part,
            ..buffer.clone()
        });
    }
    r.scenario.buffers.push(Buffer {
        devices: team,
        ..buffer
    });
    r.scenario.buffers.extend(parts);
    Ok(())
}

/// Refuses a multicast buffer where memory is needed.
pub(super) fn has_memory(r: &Resolver<'_>, buffer: usize, span: &Range<usize>) -> Result<usize> {
    let shape = &r.scenario.buffers[buffer];
    if shape.memory == Memory::Multicast {
        let message = format!(
            "`{name}` is an address for multimem instructions; its memory is `{name}.{}`",
            shape.devices.first().copied().unwrap_or(0),
            name = shape.name,
        );
        return Err(r.place.error(span, message));
    }
    Ok(buffer)
}

/// Refuses a part, which comes and goes with the whole.
pub(super) fn is_whole(r: &Resolver<'_>, buffer: usize, name: &Spanned<String>) -> Result<usize> {
    if r.scenario.buffers[buffer].memory == Memory::Part {
        let message = format!(
            "`{}` is a part of a multicast buffer: name that",
            name.get_ref()
        );
        return Err(r.place.error(&name.span(), message));
    }
    Ok(buffer)
}

#[cfg(test)]
#[path = "parse_multicast_tests.rs"]
mod tests;
