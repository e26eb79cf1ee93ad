//! Names of functions as people write them.

/// The Rust or C++ name behind a mangled one; the name itself if it is neither.
pub fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
        && let Ok(cpp) = symbol.demangle()
    {
        return cpp;
    }
    name.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_and_cpp_names() {
        for (mangled, plain) in [
            ("consumer", "consumer"),
            ("_Z6reducePfS_i", "reduce(float*, float*, int)"),
            ("_ZN4core3num17h0123456789abcdefE", "core::num"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_Z", "_Z"),
            ("_Zgarbage", "_Zgarbage"),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled), plain);
        }
    }
}
