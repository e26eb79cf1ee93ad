//! Programmatic dependent launches: what they know before and after they wait for the launch before.

use crate::support::{Turn, simulator};
use gsan_host::report::{Race, RaceClass};
use gsan_host::{
    Arg, Buffer, LaunchSpec, MemoryKind, ModuleId, Session, StreamFlags, StreamId, Wait,
};

/// All let the next kernel start. `late(p, q)` waits, then reads; `early(p, q)` reads, then waits; `never(p, q)` does not wait;
/// `first(p, q)` waits before it lets the next one start. Block i writes word i of what it is given last, and reads the word of the other block of two.
fn kernels() -> String {
    let trigger = "griddepcontrol.launch_dependents;";
    let kernel = |name: &str, before: &str, after: &str| {
        format!(
            "
.visible .entry {name}(.param .u64 p, .param .u64 q)
{{
    .reg .b64 %p, %q, %o;
    .reg .b32 %b, %v;
    ld.param.u64 %p, [p];
    ld.param.u64 %q, [q];
    mov.u32 %b, %ctaid.x;
    mul.wide.u32 %o, %b, 4;
    add.u64 %q, %q, %o;
    xor.b32 %b, %b, 1;
    mul.wide.u32 %o, %b, 4;
    add.u64 %p, %p, %o;
    {before}
    ld.global.u32 %v, [%p];
    {after}
    st.global.u32 [%q], %v;
    ret;
}}
"
        )
    };
    [
        ".version 7.8\n.target sm_90\n.address_size 64\n".to_string(),
        kernel("late", &format!("{trigger} griddepcontrol.wait;"), ""),
        kernel("early", trigger, "griddepcontrol.wait;"),
        kernel("never", trigger, ""),
        kernel("first", &format!("griddepcontrol.wait; {trigger}"), ""),
    ]
    .concat()
}

struct Host {
    session: Session,
    module: ModuleId,
    stream: StreamId,
    buffers: Vec<Buffer>,
    _turn: Turn,
}

impl Host {
    fn new(seed: u64) -> Host {
        let turn = simulator(|c| c.seed = seed);
        let mut session = Session::builder().build().unwrap();
        let module = session.load_module("dependent.ptx", &kernels()).unwrap();
        let stream = session.stream("s", StreamFlags::NonBlocking, 0).unwrap();
        let buffers = ["a", "b", "c", "d"].map(|name| {
            let buffer = session.alloc(name, 64, MemoryKind::Device, 0).unwrap();
            session.initialise(&buffer, &[]).unwrap();
            buffer
        });
        Host {
            session,
            module,
            stream,
            buffers: buffers.to_vec(),
            _turn: turn,
        }
    }

    /// The kernel reads buffer `from` and writes buffer `to`.
    fn launch(&mut self, kernel: &str, from: usize, to: usize, pdl: bool) {
        let [from, to] = [from, to].map(|b| Arg::Pointer(self.buffers[b].address));
        let (grid, block) = ([2, 1, 1], [1, 1, 1]);
        let mut spec = LaunchSpec::new(self.module, kernel, grid, block, self.stream);
        spec.pdl = pdl;
        self.session.launch(&spec.arg(from).arg(to)).unwrap();
    }

    fn races(self) -> Vec<Race> {
        self.session.finish().unwrap().races
    }
}

fn is_about(races: &[Race], buffer: &str) {
    assert!(!races.is_empty());
    for race in races {
        assert_eq!(race.buffer.as_deref(), Some(buffer), "{race:?}");
    }
}

#[test]
fn what_the_launch_before_wrote_may_be_read_after_the_wait_only() {
    for seed in 0..8 {
        let mut h = Host::new(seed);
        h.launch("never", 0, 1, false);
        h.launch("late", 1, 2, true);
        assert_eq!(h.races(), vec![]);
        let mut h = Host::new(seed);
        h.launch("never", 0, 1, false);
        h.launch("early", 1, 2, true);
        is_about(&h.races(), "b");
    }
}

#[test]
fn what_came_before_the_launch_before_may_be_read_at_once() {
    for seed in 0..8 {
        let mut h = Host::new(seed);
        h.launch("never", 0, 1, false);
        h.launch("never", 0, 2, false);
        h.launch("early", 1, 3, true);
        assert_eq!(h.races(), vec![]);
    }
}

#[test]
fn a_chain_of_them_is_followed_link_by_link() {
    for seed in 0..8 {
        let mut h = Host::new(seed);
        h.launch("never", 0, 1, false);
        for (from, to) in [
            (1, 2),
            (2, 3),
            (3, 1),
            (1, 2),
            (2, 3),
            (3, 1),
            (1, 2),
            (2, 3),
        ] {
            h.launch("late", from, to, true);
        }
        // Ordinary, after all of them.
        h.launch("never", 1, 0, false);
        assert_eq!(h.races(), vec![]);
        let mut h = Host::new(seed);
        h.launch("never", 0, 1, false);
        h.launch("late", 1, 2, true);
        h.launch("early", 2, 3, true);
        is_about(&h.races(), "c");
    }
}

#[test]
fn what_came_before_the_launch_before_is_known_if_that_one_waits_first() {
    for seed in 0..8 {
        let run = |second: &str, third: &str, between: usize| {
            let mut h = Host::new(seed);
            h.launch("never", 0, 1, false);
            h.launch(second, 0, 2, true);
            for _ in 0..between {
                h.launch("first", 0, 2, true);
            }
            h.launch(third, 1, 3, true);
            h.races()
        };
        assert_eq!(run("first", "early", 0), vec![]);
        assert_eq!(run("late", "late", 0), vec![]);
        is_about(&run("late", "early", 0), "b");
        // A launch in between hands on what it began with, or what it has waited for.
        assert_eq!(run("first", "early", 2), vec![]);
        assert_eq!(run("late", "early", 2), vec![]);
    }
}

#[test]
fn what_a_launch_began_with_it_hands_on() {
    for seed in 0..8 {
        let run = |kernels: [&str; 3]| {
            let mut h = Host::new(seed);
            h.launch("never", 0, 1, false);
            h.launch(kernels[0], 0, 2, true);
            h.launch(kernels[1], 0, 2, true);
            h.launch(kernels[2], 1, 3, true);
            h.races()
        };
        assert_eq!(run(["first", "late", "early"]), vec![]);
        is_about(&run(["late", "late", "early"]), "b");
        // The host's waits are known besides, whether or not they leave it a dependent launch.
        let mut h = Host::new(seed);
        h.launch("never", 0, 1, false);
        h.session.synchronize(Wait::Device).unwrap();
        h.launch("never", 0, 2, false);
        h.launch("late", 0, 2, true);
        h.launch("early", 1, 3, true);
        assert_eq!(h.races(), vec![]);
    }
}

#[test]
fn one_that_never_waits_is_reported_at_its_kernel() {
    let mut h = Host::new(3);
    h.launch("late", 0, 1, false);
    h.launch("never", 2, 3, true);
    // What comes after both is ordered after both all the same.
    h.launch("late", 1, 2, false);
    let races = h.races();
    let [race] = &races[..] else {
        panic!("{races:?}");
    };
    assert_eq!(race.class, RaceClass::MissingWait);
    assert_eq!(race.current.kernel.as_deref(), Some("never"));
    assert_eq!(race.prior.kernel.as_deref(), Some("late"));
    let line = race.current.site.as_ref().unwrap().ptx_line as usize;
    let text = kernels();
    assert!(text.lines().nth(line - 1).unwrap().contains("never("));
}

#[test]
fn what_lies_between_makes_it_an_ordinary_launch() {
    for between in 0..4 {
        let mut h = Host::new(between);
        h.launch("never", 0, 1, false);
        match between {
            0 => {
                let e = h.session.event("e", 0).unwrap();
                h.session.record(e, h.stream).unwrap();
            }
            1 => h.session.synchronize(Wait::Stream(h.stream)).unwrap(),
            2 => {
                let d = h.buffers[3].address;
                h.session.memset(d, 1, 8, h.stream).unwrap();
            }
            _ => h.session.synchronize(Wait::Device).unwrap(),
        }
        h.launch("early", 1, 2, true);
        assert_eq!(h.races(), vec![], "{between}");
    }
}
