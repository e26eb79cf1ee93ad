//! Tensor maps among a launch's arguments.

use super::Resolver;
use crate::element::ElementType;
use crate::failure::Result;
use crate::scenario::model::Tensor;
use gsan_host::{TensorSpec, TensorType, Windows};
use std::ops::Range;

/// `{ tensor = "data+16", extents = [64, 32], box = [16, 8], strides = [256], steps = [1, 1], swizzle = 32, fill = "nan" }`; only
/// the first three must be there.
pub(super) fn tensor(r: &Resolver<'_>, table: &toml::Table, span: &Range<usize>) -> Result<Tensor> {
    let here = |message: String| r.place.error(span, message);
    const KEYS: [&str; 11] = [
        "tensor", "extents", "box", "strides", "steps", "swizzle", "fill", "lower", "upper",
        "channels", "pixels",
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
    let corner = |key: &str| -> Result<Vec<i32>> {
        let wrong = || here(format!("`{key}` is a list of numbers, as in [-1, -1]"));
        let list = table
            .get(key)
            .map(|value| value.as_array().ok_or_else(wrong));
        let numbers = list.transpose()?.into_iter().flatten();
        numbers
            .map(|n| n.as_integer().and_then(|n| i32::try_from(n).ok()))
            .collect::<Option<_>>()
            .ok_or_else(wrong)
    };
    let of_windows = ["lower", "upper", "channels", "pixels"];
    let windows = of_windows
        .iter()
        .filter(|key| table.contains_key(**key))
        .count();
    let count = |key: &str| {
        let number = table.get(key).and_then(toml::Value::as_integer);
        number
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| here(format!("`{key}` is a number from 1 on")))
    };
    let (boxes, windows) = match windows {
        0 => (words("box")?, None),
        4 if !table.contains_key("box") => {
            let boxes = vec![count("channels")?, count("pixels")?];
            let (lower, upper) = (corner("lower")?, corner("upper")?);
            (boxes, Some(Windows { lower, upper }))
        }
        _ => {
            let message =
                "a map for windows has `lower`, `upper`, `channels` and `pixels`, and no `box`";
            return Err(here(message.into()));
        }
    };
    Ok(Tensor {
        at,
        spec: TensorSpec {
            ty: kind(buffer.ty),
            strides,
            boxes,
            windows,
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
