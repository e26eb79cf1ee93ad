//! Lists a module's sites with their chains of places: `cargo run -p gsan-ptx --example sites -- X.ptx`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = include_str!("../tests/data/stub_runtime.ptx");
    for name in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&name)?;
        let done = gsan_ptx::instrument(&text, &gsan_ptx::Options::new(runtime, &name))?;
        for site in &done.sites {
            println!("{name}:{}: {} {}", site.ptx_line, site.op.0, site.function);
            for place in &site.places {
                let library = if place.is_library() { " (library)" } else { "" };
                let function = place.function.as_deref().unwrap_or("");
                println!(
                    "    {}:{}:{}{library} {function}",
                    place.file, place.line, place.column
                );
            }
        }
    }
    Ok(())
}
