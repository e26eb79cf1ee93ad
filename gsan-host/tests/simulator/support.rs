//! A fresh simulator for every test, and small kernels.

use gsan_host::report::{Race, Report};
use gsan_host::{Arg, Buffer, LaunchSpec, MemoryKind, ModuleId, Session, StreamFlags, StreamId};
use std::sync::{Mutex, MutexGuard, PoisonError};

static SIMULATOR: Mutex<()> = Mutex::new(());

/// The simulator is one per process: tests that use it take turns.
pub struct Turn {
    _lock: MutexGuard<'static, ()>,
}

/// A fresh simulator of the default shape, changed by `change`.
pub fn simulator(change: impl FnOnce(&mut gsan_sim::Config)) -> Turn {
    let lock = SIMULATOR.lock().unwrap_or_else(PoisonError::into_inner);
    // Refused where an earlier test has made the same choice already.
    let _ = cuda_lazy::select(cuda_lazy::Choice::Sim);
    let mut config = gsan_sim::Config::default();
    change(&mut config);
    gsan_sim::driver::reset();
    gsan_sim::driver::configure(config);
    Turn { _lock: lock }
}

/// `put(p, v)`: every thread writes its own word. `get(p, out, n)`: thread i of all reads word n - 1 - i.
/// `clash(p)`: the first thread of every block writes word 0. `die()` traps. `forever(p)` never ends.
/// `bump()` adds to a module variable without any order. `wild(p)` writes far behind the buffer.
pub const KERNELS: &str = "
.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 counter;

.visible .entry put(.param .u64 p, .param .u32 v)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [v];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    cvta.to.global.u64 %rd1, %rd1;
    mul.wide.u32 %rd2, %r5, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}

.visible .entry get(.param .u64 p, .param .u64 out, .param .u32 n)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    sub.u32 %r6, %r1, %r5;
    sub.u32 %r6, %r6, 1;
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mul.wide.u32 %rd3, %r6, 4;
    add.u64 %rd4, %rd1, %rd3;
    ld.global.u32 %r7, [%rd4];
    mul.wide.u32 %rd5, %r5, 4;
    add.u64 %rd6, %rd2, %rd5;
    st.global.u32 [%rd6], %r7;
    ret;
}

.visible .entry clash(.param .u64 p)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra $done;
    mov.u32 %r2, %ctaid.x;
    st.global.u32 [%rd1], %r2;
$done:
    ret;
}

.visible .entry clash_and_die(.param .u64 p)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r2, %ctaid.x;
    st.global.u32 [%rd1], %r2;
    setp.ne.u32 %p1, %r2, 7;
    @%p1 bra $done;
    trap;
$done:
    ret;
}

.visible .entry clash_forever(.param .u64 p)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r2, %ctaid.x;
    st.global.u32 [%rd1], %r2;
$again:
    bra $again;
}

.visible .entry bump()
{
    .reg .b32 %r<2>;
    ld.global.u32 %r1, [counter];
    add.u32 %r1, %r1, 1;
    st.global.u32 [counter], %r1;
    ret;
}

.visible .entry wild(.param .u64 p)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    add.u64 %rd2, %rd1, 1073741824;
    ld.global.u32 %r1, [%rd2];
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry dynamic_size(.param .u64 p)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %dynamic_smem_size;
    st.global.u32 [%rd1], %r1;
    ret;
}
";

/// Blocks and threads of `put` and `get`.
pub const BLOCKS: u32 = 8;
pub const THREADS: u32 = 32;
pub const WORDS: u32 = BLOCKS * THREADS;
pub const BYTES: u64 = 4 * WORDS as u64;

/// A session with the kernels loaded.
pub struct Host {
    pub session: Session,
    pub module: ModuleId,
    pub default: StreamId,
}

impl Host {
    pub fn new() -> Host {
        Host::with(Session::builder().build().unwrap())
    }

    pub fn with(mut session: Session) -> Host {
        let module = session.load_module("kernels.ptx", KERNELS).unwrap();
        let default = session.default_stream(0).unwrap();
        Host {
            session,
            module,
            default,
        }
    }

    pub fn buffer(&mut self, name: &str) -> Buffer {
        self.session
            .alloc(name, BYTES, MemoryKind::Device, 0)
            .unwrap()
    }

    pub fn stream(&mut self, name: &str) -> StreamId {
        self.session.stream(name, StreamFlags::Blocking, 0).unwrap()
    }

    pub fn spec(&self, kernel: &str, stream: StreamId) -> LaunchSpec {
        LaunchSpec::new(self.module, kernel, [BLOCKS, 1, 1], [THREADS, 1, 1], stream)
    }

    pub fn put(&mut self, to: Buffer, value: u32, stream: StreamId) {
        let spec = self
            .spec("put", stream)
            .arg(Arg::Pointer(to.address))
            .arg(Arg::u32(value));
        self.session.launch(&spec).unwrap();
    }

    pub fn get(&mut self, from: Buffer, to: Buffer, stream: StreamId) {
        let spec = self
            .spec("get", stream)
            .arg(Arg::Pointer(from.address))
            .arg(Arg::Pointer(to.address));
        self.session.launch(&spec.arg(Arg::u32(WORDS))).unwrap();
    }

    pub fn clash(&mut self, on: Buffer, stream: StreamId) {
        let spec = self.spec("clash", stream).arg(Arg::Pointer(on.address));
        self.session.launch(&spec).unwrap();
    }

    pub fn words(&mut self, buffer: Buffer) -> Vec<u32> {
        let bytes = self.session.contents(buffer.address, buffer.bytes).unwrap();
        bytes
            .chunks_exact(4)
            .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
            .collect()
    }

    pub fn races(self) -> Vec<Race> {
        let report = self.session.finish().unwrap();
        assert_eq!(
            report.outcome,
            gsan_host::report::Outcome::Completed,
            "{:?}",
            report.message
        );
        report.races
    }

    pub fn report(self) -> Report {
        self.session.finish().unwrap()
    }
}
