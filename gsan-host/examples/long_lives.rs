//! Long lives: many launches in one process, and a kernel of many barriers and releases. Prints what
//! `bench/results/long-lives.md` records.
//!
//!     cargo run --release -p gsan-host --example long_lives [LAUNCHES [RELEASES]]
//!
//! On a GPU if there is one, else on the simulator.

use gsan_host::{Arg, CellFormat, LaunchSpec, MemoryKind, Session, StreamFlags, Wait};
use std::error::Error;
use std::time::Instant;

/// `step(p)`: each block adds to its word. `persist(p, n)`: n rounds of a barrier and a release by each block on its own word.
const KERNELS: &str = "
.version 7.0
.target sm_70
.address_size 64

.visible .entry step(.param .u64 p)
{
    .reg .b64 %p, %o;
    .reg .b32 %b, %v;
    ld.param.u64 %p, [p];
    mov.u32 %b, %ctaid.x;
    mul.wide.u32 %o, %b, 4;
    add.u64 %p, %p, %o;
    ld.global.u32 %v, [%p];
    add.u32 %v, %v, 1;
    st.global.u32 [%p], %v;
    ret;
}

.visible .entry persist(.param .u64 p, .param .u32 n)
{
    .reg .pred %q, %first;
    .reg .b64 %p, %o;
    .reg .b32 %b, %t, %n, %v;
    ld.param.u64 %p, [p];
    ld.param.u32 %n, [n];
    mov.u32 %b, %ctaid.x;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    mul.wide.u32 %o, %b, 4;
    add.u64 %p, %p, %o;
$again:
    bar.sync 0;
    @%first st.release.gpu.global.u32 [%p], %n;
    sub.u32 %n, %n, 1;
    setp.ne.u32 %q, %n, 0;
    @%q bra $again;
    ret;
}
";

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse::<u32>().ok());
    let launches = numbers.next().unwrap_or(100_000);
    let releases = numbers.next().unwrap_or(1_000_000);
    if cuda_lazy::backend() == cuda_lazy::Backend::Simulated {
        let mut config = gsan_sim::Config::default();
        config.step_budget = u64::MAX;
        gsan_sim::driver::configure(config);
    }
    println!("| cell | what | seconds | findings | misses |\n|---|---|---|---|---|");
    for cell in [CellFormat::Wide, CellFormat::Reference] {
        many_launches(cell, launches)?;
        one_kernel(cell, releases)?;
    }
    Ok(())
}

fn session(cell: CellFormat) -> Result<Session, gsan_host::Error> {
    Session::builder().cell(cell).slots_per_sm(Some(4)).build()
}

fn row(
    cell: CellFormat,
    what: &str,
    started: Instant,
    session: Session,
) -> Result<(), gsan_host::Error> {
    let report = session.finish()?;
    println!(
        "| {cell:?} | {what} | {:.1} | {} ({:?}) | {:?} |",
        started.elapsed().as_secs_f64(),
        report.races.len(),
        report.outcome,
        report.stats.misses.unwrap_or_default(),
    );
    Ok(())
}

/// Two streams, joined by an event now and then; the host waits every thousand launches.
fn many_launches(cell: CellFormat, launches: u32) -> Result<(), Box<dyn Error>> {
    let mut session = session(cell)?;
    let module = session.load_module("long_lives.ptx", KERNELS)?;
    let buffer = session.alloc("words", 64, MemoryKind::Device, 0)?;
    session.initialise(&buffer, &[])?;
    let streams = [
        session.stream("a", StreamFlags::NonBlocking, 0)?,
        session.stream("b", StreamFlags::NonBlocking, 0)?,
    ];
    let event = session.event("e", 0)?;
    let started = Instant::now();
    for i in 0..launches {
        let stream = streams[(i / 10 % 2) as usize];
        if i % 10 == 0 {
            session.record(event, streams[(i / 10 + 1) as usize % 2])?;
            session.wait(stream, event)?;
        }
        let spec = LaunchSpec::new(module, "step", [2, 1, 1], [1, 1, 1], stream);
        session.launch(&spec.arg(Arg::Pointer(buffer.address)))?;
        if i % 1000 == 999 {
            session.synchronize(Wait::Device)?;
        }
    }
    let words = session.contents(buffer.address, 8)?;
    let count = u32::from_le_bytes([words[0], words[1], words[2], words[3]]);
    let what = format!("{launches} launches (each word counted {count})");
    Ok(row(cell, &what, started, session)?)
}

/// One kernel that goes on for long, then one that reads behind it.
fn one_kernel(cell: CellFormat, releases: u32) -> Result<(), Box<dyn Error>> {
    let mut session = session(cell)?;
    let module = session.load_module("long_lives.ptx", KERNELS)?;
    let buffer = session.alloc("words", 64, MemoryKind::Device, 0)?;
    session.initialise(&buffer, &[])?;
    let stream = session.default_stream(0)?;
    let started = Instant::now();
    let spec = LaunchSpec::new(module, "persist", [1, 1, 1], [64, 1, 1], stream);
    session.launch(
        &spec
            .arg(Arg::Pointer(buffer.address))
            .arg(Arg::u32(releases)),
    )?;
    let after = LaunchSpec::new(module, "step", [1, 1, 1], [1, 1, 1], stream);
    session.launch(&after.arg(Arg::Pointer(buffer.address)))?;
    session.synchronize(Wait::Device)?;
    let what = format!("a kernel of {releases} barriers and releases");
    Ok(row(cell, &what, started, session)?)
}
