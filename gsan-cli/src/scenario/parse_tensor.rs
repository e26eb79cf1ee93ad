//! Tensor maps among a launch's arguments.

use super::Resolver;
use crate::element::ElementType;
use crate::failure::Result;
use crate::scenario::model::Tensor;
use gsan_host::{TensorSpec, TensorType};
use std::ops::Range;

/// `{ tensor = "data+16", extents = [64, 32], box = [16, 8], strides = [256], steps = [1, 1], swizzle = 32, fill = "nan" }`; only
/// the first three must be there.
pub(super) fn tensor(r: &Resolver<'_>, table: &toml::Table, span: &Range<usize>) -> Result<Tensor> {
    let here = |message: String| r.place.error(span, message);
    const KEYS: [&str; 7] = [
        "tensor", "extents", "box", "strides", "steps", "swizzle", "fill",
    ];
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let known = KEYS.join("`, `");
        return Err(here(format!(
            "a tensor map has no `{key}`: there are `{known}`"
        )));
    }
    let Some(name) = table.get("tensor").and_then(toml::Value::as_str) else {
        return Err(here("`tensor` is a buffer, \"data\" or \"data+16\"".into()));
    };
    let at = r.memory_ref(name, span)?;
    let list = |key: &str| -> Result<Vec<u64>> {
        let wrong = || {
            here(format!(
                "`{key}` is a list of numbers from 0 on, as in [64, 32]"
            ))
        };
        let Some(value) = table.get(key) else {
            return Ok(Vec::new());
        };
        let numbers = value.as_array().ok_or_else(wrong)?.iter();
        numbers
            .map(|n| n.as_integer().and_then(|n| u64::try_from(n).ok()))
            .collect::<Option<_>>()
            .ok_or_else(wrong)
    };
    let words = |key: &str| -> Result<Vec<u32>> {
        let most = |_| here(format!("a number of `{key}` is too large"));
        list(key)?
            .into_iter()
            .map(|n| u32::try_from(n).map_err(most))
            .collect()
    };
    let buffer = &r.scenario.buffers[at.buffer];
    let size = buffer.ty.size() as u64;
    let extents = list("extents")?;
    let mut strides = list("strides")?;
    if strides.is_empty() {
        // The rows lie one behind the other.
        let mut bytes = size;
        for extent in extents.iter().take(extents.len().saturating_sub(1)) {
            bytes = bytes.saturating_mul(*extent);
            strides.push(bytes);
        }
    }
    let steps = extents.iter().zip(std::iter::once(&size).chain(&strides));
    let last = steps.fold(size, |sum, (extent, stride)| {
        sum.saturating_add(extent.saturating_sub(1).saturating_mul(*stride))
    });
    let room = buffer.bytes().saturating_sub(at.offset);
    if last > room {
        return Err(here(format!(
            "the tensor has {last} bytes, `{name}` only {room}"
        )));
    }
    let swizzle = match table.get("swizzle").map(toml::Value::as_integer) {
        None => 0,
        Some(Some(n @ (0 | 32 | 64 | 128))) => n as u32,
        Some(_) => return Err(here("`swizzle` is 0, 32, 64 or 128 bytes".into())),
    };
    let fill_nan = match table.get("fill").map(toml::Value::as_str) {
        None | Some(Some("zero")) => false,
        Some(Some("nan")) => true,
        Some(_) => return Err(here("`fill` is \"zero\" or \"nan\"".into())),
    };
    Ok(Tensor {
        at,
        spec: TensorSpec {
            ty: kind(buffer.ty),
            strides,
            boxes: words("box")?,
            steps: words("steps")?,
            extents,
            swizzle,
            fill_nan,
        },
    })
}

/// The driver knows no signed bytes and halves.
fn kind(ty: ElementType) -> TensorType {
    match ty {
        ElementType::U8 | ElementType::I8 => TensorType::U8,
        ElementType::U16 | ElementType::I16 => TensorType::U16,
        ElementType::U32 => TensorType::U32,
        ElementType::I32 => TensorType::I32,
        ElementType::U64 => TensorType::U64,
        ElementType::I64 => TensorType::I64,
        ElementType::F32 => TensorType::F32,
        ElementType::F64 => TensorType::F64,
    }
}
