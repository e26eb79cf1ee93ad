//! The nvptx instance of [`Machine`]: one PTX instruction per method, spelled out.
//!
//! rustc drops the ordering of `fetch_*` and `swap` on this target (DESIGN: facts), so nothing here goes through
//! `core::sync::atomic`. Addresses are generic: the same methods reach global memory and the block state in shared memory.

use crate::layout::{ModuleState, Scope};
use crate::machine::Machine;
use core::arch::asm;

/// The GPU.
#[derive(Clone, Copy)]
pub struct Nvptx;

/// Filled in by the host after loading the module.
#[unsafe(no_mangle)]
pub static mut __gsan_module: ModuleState = ModuleState {
    global: 0,
    reserved_shared: 1024,
    version: crate::layout::LAYOUT_VERSION,
    cell: <Format as crate::cell::Cell>::STRIDE as u32,
    reserved: 0,
};

/// The shadow cells' format: one per build, the classic 24-byte cell with the feature `reference`.
#[cfg(not(feature = "reference"))]
pub type Format = crate::wide::Wide;
/// The shadow cells' format: one per build, the classic 24-byte cell with the feature `reference`.
#[cfg(feature = "reference")]
pub type Format = crate::reference::ReferenceCell;

/// Reads a 32-bit special register.
macro_rules! special32 {
    ($name:literal) => {{
        let value: u32;
        // SAFETY: reading a special register has no effect and touches no memory.
        unsafe { asm!(concat!("mov.u32 {}, ", $name, ";"), out(reg32) value, options(nomem, nostack)) };
        value
    }};
}

// SAFETY (for every block below): the trait's contract is that `addr` lies in memory that the host laid out for the
// detector, aligned to the access; each block is a single memory instruction at that address.
impl Machine for Nvptx {
    #[inline(always)]
    fn load32(self, addr: u64) -> u32 {
        let value: u32;
        // SAFETY: see above.
        unsafe {
            asm!("ld.relaxed.gpu.b32 {}, [{}];", out(reg32) value, in(reg64) addr, options(nostack))
        };
        value
    }

    #[inline(always)]
    fn store32(self, addr: u64, value: u32) {
        // SAFETY: see above.
        unsafe {
            asm!("st.relaxed.gpu.b32 [{}], {};", in(reg64) addr, in(reg32) value, options(nostack))
        };
    }

    #[inline(always)]
    fn load64(self, addr: u64) -> u64 {
        let value: u64;
        // SAFETY: see above.
        unsafe {
            asm!("ld.relaxed.gpu.b64 {}, [{}];", out(reg64) value, in(reg64) addr, options(nostack))
        };
        value
    }

    #[inline(always)]
    fn load32x4(self, addr: u64) -> [u32; 4] {
        let (a, b, c, d): (u32, u32, u32, u32);
        // SAFETY: see above.
        unsafe {
            asm!("ld.relaxed.gpu.v4.b32 {{{}, {}, {}, {}}}, [{}];",
                out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg64) addr, options(nostack));
        }
        [a, b, c, d]
    }

    #[inline(always)]
    fn load64x2(self, addr: u64) -> [u64; 2] {
        let (a, b): (u64, u64);
        // SAFETY: see above.
        unsafe {
            asm!("ld.relaxed.gpu.v2.b64 {{{}, {}}}, [{}];",
                out(reg64) a, out(reg64) b, in(reg64) addr, options(nostack));
        }
        [a, b]
    }

    #[inline(always)]
    fn load64_of_map(self, addr: u64) -> u64 {
        let value: u64;
        // SAFETY: see above. Strong loads are for global and shared memory only.
        unsafe { asm!("ld.b64 {}, [{}];", out(reg64) value, in(reg64) addr, options(nostack)) };
        value
    }

    #[inline(always)]
    fn store64(self, addr: u64, value: u64) {
        // SAFETY: see above.
        unsafe {
            asm!("st.relaxed.gpu.b64 [{}], {};", in(reg64) addr, in(reg64) value, options(nostack))
        };
    }

    #[inline(always)]
    fn load32_acquire(self, addr: u64) -> u32 {
        let value: u32;
        // SAFETY: see above.
        unsafe {
            asm!("ld.acquire.gpu.b32 {}, [{}];", out(reg32) value, in(reg64) addr, options(nostack))
        };
        value
    }

    #[inline(always)]
    fn store32_release(self, addr: u64, value: u32) {
        // SAFETY: see above.
        unsafe {
            asm!("st.release.gpu.b32 [{}], {};", in(reg64) addr, in(reg32) value, options(nostack))
        };
    }

    #[inline(always)]
    fn load64_acquire(self, addr: u64) -> u64 {
        let value: u64;
        // SAFETY: see above.
        unsafe {
            asm!("ld.acquire.gpu.b64 {}, [{}];", out(reg64) value, in(reg64) addr, options(nostack))
        };
        value
    }

    #[inline(always)]
    fn store64_release(self, addr: u64, value: u64) {
        // SAFETY: see above.
        unsafe {
            asm!("st.release.gpu.b64 [{}], {};", in(reg64) addr, in(reg64) value, options(nostack))
        };
    }

    #[inline(always)]
    fn cas32_acquire(self, addr: u64, expected: u32, new: u32) -> u32 {
        let old: u32;
        // SAFETY: see above.
        unsafe {
            asm!("atom.acquire.gpu.cas.b32 {}, [{}], {}, {};",
                out(reg32) old, in(reg64) addr, in(reg32) expected, in(reg32) new, options(nostack));
        }
        old
    }

    #[inline(always)]
    fn cas32(self, addr: u64, expected: u32, new: u32) -> u32 {
        let old: u32;
        // SAFETY: see above.
        unsafe {
            asm!("atom.relaxed.gpu.cas.b32 {}, [{}], {}, {};",
                out(reg32) old, in(reg64) addr, in(reg32) expected, in(reg32) new, options(nostack));
        }
        old
    }

    #[inline(always)]
    fn cas64(self, addr: u64, expected: u64, new: u64) -> u64 {
        let old: u64;
        // SAFETY: see above.
        unsafe {
            asm!("atom.acq_rel.gpu.cas.b64 {}, [{}], {}, {};",
                out(reg64) old, in(reg64) addr, in(reg64) expected, in(reg64) new, options(nostack));
        }
        old
    }

    #[inline(always)]
    fn add32(self, addr: u64, value: u32) -> u32 {
        let old: u32;
        // SAFETY: see above.
        unsafe {
            asm!("atom.acq_rel.gpu.add.u32 {}, [{}], {};",
                out(reg32) old, in(reg64) addr, in(reg32) value, options(nostack));
        }
        old
    }

    #[inline(always)]
    fn tally64(self, addr: u64, value: u64) {
        // SAFETY: see above.
        unsafe {
            asm!("red.relaxed.gpu.add.u64 [{}], {};", in(reg64) addr, in(reg64) value, options(nostack))
        };
    }

    #[inline(always)]
    fn max32(self, addr: u64, value: u32) {
        // SAFETY: see above.
        unsafe {
            asm!("red.relaxed.gpu.max.u32 [{}], {};", in(reg64) addr, in(reg32) value, options(nostack))
        };
    }

    #[inline(always)]
    fn or32(self, addr: u64, bits: u32) -> u32 {
        let old: u32;
        // SAFETY: see above.
        unsafe {
            asm!("atom.acq_rel.gpu.or.b32 {}, [{}], {};",
                out(reg32) old, in(reg64) addr, in(reg32) bits, options(nostack));
        }
        old
    }

    #[inline(always)]
    fn and32(self, addr: u64, bits: u32) {
        let _old: u32;
        // SAFETY: see above.
        unsafe {
            asm!("atom.acq_rel.gpu.and.b32 {}, [{}], {};",
                out(reg32) _old, in(reg64) addr, in(reg32) bits, options(nostack));
        }
    }

    #[inline(always)]
    fn fence(self, scope: Scope) {
        // SAFETY: a fence touches no memory of its own.
        unsafe {
            match scope {
                Scope::None => {}
                Scope::Cta => asm!("fence.acq_rel.cta;", options(nostack)),
                Scope::Cluster | Scope::Gpu => asm!("fence.acq_rel.gpu;", options(nostack)),
                Scope::Sys => asm!("fence.acq_rel.sys;", options(nostack)),
            }
        }
    }

    #[inline(always)]
    fn pause(self) {
        // SAFETY: sleeping has no effect on memory.
        unsafe { asm!("nanosleep.u32 40;", options(nostack)) };
    }

    #[inline(always)]
    fn sm(self) -> u32 {
        special32!("%smid")
    }

    #[inline(always)]
    fn block(self) -> [u32; 3] {
        [
            special32!("%ctaid.x"),
            special32!("%ctaid.y"),
            special32!("%ctaid.z"),
        ]
    }

    #[inline(always)]
    fn grid(self) -> [u32; 3] {
        [
            special32!("%nctaid.x"),
            special32!("%nctaid.y"),
            special32!("%nctaid.z"),
        ]
    }

    #[inline(always)]
    fn thread(self) -> [u32; 3] {
        [
            special32!("%tid.x"),
            special32!("%tid.y"),
            special32!("%tid.z"),
        ]
    }

    #[inline(always)]
    fn linear_thread(self) -> u32 {
        let [x, y, z] = self.thread();
        let rows = special32!("%ntid.y").wrapping_mul(z).wrapping_add(y);
        special32!("%ntid.x").wrapping_mul(rows).wrapping_add(x)
    }

    #[inline(always)]
    fn group(self) -> u32 {
        let group: u32;
        // SAFETY: reads which threads are active, touches no memory.
        unsafe { asm!("activemask.b32 {};", out(reg32) group, options(nostack)) };
        group
    }

    #[inline(always)]
    fn leads(self, group: u32) -> bool {
        special32!("%lanemask_lt") & group == 0
    }

    #[inline(always)]
    #[inline(always)]
    fn block_threads(self) -> u32 {
        special32!("%ntid.x")
            .wrapping_mul(special32!("%ntid.y"))
            .wrapping_mul(special32!("%ntid.z"))
    }

    #[inline(always)]
    fn grid_id(self) -> u64 {
        let value: u64;
        // SAFETY: reading a special register has no effect and touches no memory.
        unsafe { asm!("mov.u64 {}, %gridid;", out(reg64) value, options(nomem, nostack)) };
        value
    }

    #[inline(always)]
    fn dynamic_shared(self) -> u32 {
        special32!("%dynamic_smem_size")
    }

    #[inline(always)]
    fn total_shared(self) -> u32 {
        special32!("%total_smem_size")
    }

    #[inline(always)]
    fn shared_address(self, offset: u32) -> u64 {
        let addr: u64;
        // SAFETY: an address computation.
        unsafe {
            asm!("cvta.shared.u64 {}, {};", out(reg64) addr, in(reg64) offset as u64, options(nomem, nostack))
        };
        addr
    }

    #[inline(always)]
    fn is_global(self, addr: u64) -> bool {
        let is: u32;
        // SAFETY: a test of an address's value.
        unsafe {
            asm!("{{ .reg .pred %gsan_p; isspacep.global %gsan_p, {1}; selp.b32 {0}, 1, 0, %gsan_p; }}",
                out(reg32) is, in(reg64) addr, options(nomem, nostack));
        }
        is != 0
    }

    #[inline(always)]
    fn module(self) -> u64 {
        &raw const __gsan_module as u64
    }
}
