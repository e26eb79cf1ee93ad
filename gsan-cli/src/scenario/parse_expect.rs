//! `[expect]`.

use super::steps::number;
use super::{Resolver, listed, multicasts};
use crate::failure::Result;
use crate::names::Named;
use crate::scenario::model::*;
use crate::scenario::raw;
use gsan_host::report::{Outcome, RaceClass};
use toml::Spanned;

/// Checks what must come out against what there is.
pub(super) fn resolve(r: &Resolver<'_>, raw: raw::Expect) -> Result<Expect> {
    let schedules = match &raw.schedules {
        Some(n) if *n.get_ref() == 0 => {
            return Err(r.place.error(&n.span(), "`schedules` must be at least 1"));
        }
        n => n.as_ref().map(|n| *n.get_ref()),
    };
    let outcome = match &raw.outcome {
        None => Outcome::Completed,
        Some(word) => Outcome::from_word(word.get_ref()).ok_or_else(|| {
            let message = format!(
                "`{}` is not an outcome; there are {}",
                word.get_ref(),
                Outcome::words()
            );
            r.place.error(&word.span(), message)
        })?,
    };
    let mut races = Vec::new();
    if let Some(inline) = &raw.races
        && let Some(first) = raw.race.first()
    {
        let message = "`races` and [[expect.race]] exclude each other: leave `races` out";
        return Err(r.place.error(
            &if inline.get_ref().is_empty() {
                inline.span()
            } else {
                first.span()
            },
            message,
        ));
    }
    for race in raw
        .race
        .iter()
        .chain(raw.races.iter().flat_map(|r| r.get_ref()))
    {
        races.push(expected_race(r, race)?);
    }
    let mut values = Vec::new();
    for value in &raw.value {
        values.push(expected_value(r, value)?);
    }
    Ok(Expect {
        schedules,
        outcome,
        message: raw.message,
        races,
        values,
    })
}

fn expected_race(r: &Resolver<'_>, raw: &Spanned<raw::Race>) -> Result<ExpectedRace> {
    let line = r.place.line(&raw.span());
    let raw = raw.get_ref();
    if let Some(name) = &raw.buffer {
        // Module variables have names too; those are known only when the module is loaded.
        if name.get_ref().is_empty() {
            return Err(r.place.error(&name.span(), "a buffer's name is not empty"));
        }
        if r.scenario.modules.is_empty() && r.buffer_named(name.get_ref()).is_none() {
            return Err(r.no_buffer(name.get_ref(), &name.span()));
        }
    }
    let classes: Option<Vec<RaceClass>> = raw
        .class
        .as_ref()
        .map(|c| words(r, "class", c))
        .transpose()?;
    let off = |class| r.scenario.classes_off.contains(class);
    if let (Some(classes), Some(at)) = (&classes, &raw.class)
        && classes.iter().all(off)
    {
        let message = "this class is switched off (`classes_off`): nothing of it is reported";
        return Err(r.place.error(&at.span(), message));
    }
    Ok(ExpectedRace {
        kinds: raw.kind.as_ref().map(|k| words(r, "kind", k)).transpose()?,
        classes,
        buffer: raw.buffer.as_ref().map(|b| b.get_ref().clone()),
        offset: raw.offset,
        kernel: raw.kernel.clone(),
        source_lines: raw.line.as_ref().map(|l| lines(r, l)).transpose()?,
        prior_line: raw.prior_line,
        min_schedules: raw.min_schedules.unwrap_or(1),
        line,
    })
}

/// One line or a list of those allowed.
fn lines(r: &Resolver<'_>, raw: &Spanned<toml::Value>) -> Result<Vec<u32>> {
    let one = |value: &toml::Value| {
        let line = value.as_integer().and_then(|n| u32::try_from(n).ok());
        let wrong = "`line` is the number of a line, or a list of those allowed";
        line.ok_or_else(|| r.place.error(&raw.span(), wrong))
    };
    match raw.get_ref() {
        // An empty list allows nothing: as wrong as a word.
        toml::Value::Array(list) if !list.is_empty() => list.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

/// One word or a list of those allowed.
fn words<T: Named>(r: &Resolver<'_>, key: &str, raw: &Spanned<toml::Value>) -> Result<Vec<T>> {
    let one = |value: &toml::Value| match value {
        toml::Value::String(word) => T::from_word(word).ok_or_else(|| {
            r.place.error(
                &raw.span(),
                format_args!("`{word}` is not a {key}; there are {}", T::words()),
            )
        }),
        _ => Err(r.place.error(
            &raw.span(),
            format_args!("`{key}` is a word or a list of words: {}", T::words()),
        )),
    };
    match raw.get_ref() {
        toml::Value::Array(list) if list.is_empty() => Err(r.place.error(
            &raw.span(),
            format_args!("an empty `{key}` list allows nothing; leave it out"),
        )),
        toml::Value::Array(list) => list.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

fn expected_value(r: &Resolver<'_>, raw: &Spanned<raw::Value>) -> Result<ExpectedValue> {
    let line = r.place.line(&raw.span());
    let raw = raw.get_ref();
    let buffer = r.buffer_named(raw.buffer.get_ref()).ok_or_else(|| {
        let known = listed(r.scenario.buffers.iter().map(|b| b.name.as_str()));
        r.place.error(
            &raw.buffer.span(),
            format_args!("there is no buffer `{}`; {known}", raw.buffer.get_ref()),
        )
    })?;
    multicasts::has_memory(r, buffer, &raw.buffer.span())?;
    let shape = &r.scenario.buffers[buffer];
    let given = raw.values.get_ref();
    if given.len() as u64 > shape.len {
        let message = format!(
            "{} values, but `{}` has {} elements",
            given.len(),
            shape.name,
            shape.len
        );
        return Err(r.place.error(&raw.values.span(), message));
    }
    let mut values = Vec::with_capacity(given.len());
    for value in given {
        let number = number(value.get_ref())
            .ok_or_else(|| r.place.error(&value.span(), "a value is a number"))?;
        let bytes = shape
            .ty
            .encode(number)
            .map_err(|e| r.place.error(&value.span(), e))?;
        // As the buffer's type rounds it, so that 0.1 means the same in an f32 buffer and here.
        values.push(shape.ty.decode(&bytes));
    }
    Ok(ExpectedValue {
        buffer,
        values,
        line,
    })
}
