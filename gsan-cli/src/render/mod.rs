//! A report as text, JSON or SARIF. Only this program knows these formats.

pub mod demangle;
pub mod findings;
pub mod inspect;
pub mod inspect_json;
pub mod instrumentation;
pub mod json;
pub mod json_read;
pub mod sarif;
pub mod source;
pub mod text;

use gsan_host::report::Side;

/// `weak load`, `acquire.gpu rmw`; as much of it as is known.
fn describe_access(side: &Side) -> String {
    use crate::names::Named;
    use gsan_host::report::{Access, Scope};
    let mut words = Vec::new();
    if let Some(order) = side.order {
        match side.scope {
            Some(scope) if scope != Scope::None => {
                words.push(format!("{}.{}", order.word(), scope.word()))
            }
            _ => words.push(order.word().to_string()),
        }
    }
    words.push(match side.access {
        Some(Access::Rmw) => "atomic read-modify-write".to_string(),
        Some(Access::Cas) => "compare-and-swap".to_string(),
        Some(access) => access.word().to_string(),
        None => "kind not known".to_string(),
    });
    words.join(" ")
}

/// `(0,1,2)`
fn triple(t: [u32; 3]) -> String {
    format!("({},{},{})", t[0], t[1], t[2])
}

/// `1 time`, `2 times`
pub(crate) fn plural(n: u64, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{s}")
}

#[cfg(test)]
pub(crate) mod samples;
