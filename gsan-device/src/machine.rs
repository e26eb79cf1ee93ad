//! What the detector asks of the machine that it runs on.
//!
//! The detector's algorithm is written once over this trait. Instances: `nvptx` (inline PTX) and `host` (atomics of
//! `core`, or of loom), which the tests and benches use.

use crate::layout::Scope;

/// Memory by 64-bit address, fences, and who is asking.
///
/// Loads, stores and read-modify-writes are atomic and relaxed unless the name says otherwise; they hold between all
/// threads that share the shadow memory. Every address that the detector passes lies in memory that the host laid out
/// for it (`layout`), aligned to the access.
pub trait Machine: Copy {
    /// Loads 32 bits.
    fn load32(self, addr: u64) -> u32;
    /// Stores 32 bits.
    fn store32(self, addr: u64, value: u32);
    /// Loads 64 bits.
    fn load64(self, addr: u64) -> u64;
    /// Loads 64 bits of a tensor map, which may lie in constant or parameter memory. Nobody writes it meanwhile.
    fn load64_of_map(self, addr: u64) -> u64 {
        self.load64(addr)
    }
    /// Loads four words of 32 bits, each by itself, from an address that is a multiple of 16.
    fn load32x4(self, addr: u64) -> [u32; 4];
    /// Loads two words of 64 bits, each by itself, from an address that is a multiple of 16.
    fn load64x2(self, addr: u64) -> [u64; 2];
    /// Stores 64 bits.
    fn store64(self, addr: u64, value: u64);
    /// Loads 32 bits; what was stored before the matching [`Machine::store32_release`] is visible afterwards.
    fn load32_acquire(self, addr: u64) -> u32;
    /// Stores 32 bits after everything before.
    fn store32_release(self, addr: u64, value: u32);
    /// Loads 64 bits; what was stored before the matching [`Machine::store64_release`] is visible afterwards.
    fn load64_acquire(self, addr: u64) -> u64;
    /// Stores 64 bits after everything before.
    fn store64_release(self, addr: u64, value: u64);
    /// Stores `new` if `expected` is there; returns what was there. Acquire.
    fn cas32_acquire(self, addr: u64, expected: u32, new: u32) -> u32;
    /// Stores `new` if `expected` is there; returns what was there. No order.
    fn cas32(self, addr: u64, expected: u32, new: u32) -> u32;
    /// Stores `new` if `expected` is there; returns what was there. Acquire and release.
    fn cas64(self, addr: u64, expected: u64, new: u64) -> u64;
    /// Adds, returns the old value. Acquire and release.
    fn add32(self, addr: u64, value: u32) -> u32;
    /// Adds, no result, no order.
    fn tally64(self, addr: u64, value: u64);
    /// Raises to at least `value`.
    fn max32(self, addr: u64, value: u32);
    /// Sets bits, returns the old value. Acquire and release.
    fn or32(self, addr: u64, bits: u32) -> u32;
    /// Keeps only `bits`. Acquire and release.
    fn and32(self, addr: u64, bits: u32);
    /// A fence of that scope, acquire and release.
    fn fence(self, scope: Scope);
    /// Called while waiting for another thread.
    fn pause(self);

    /// Multiprocessor, below `num_sms`.
    fn sm(self) -> u32;
    /// Block index in the grid.
    fn block(self) -> [u32; 3];
    /// Blocks in the grid.
    fn grid(self) -> [u32; 3];
    /// Thread index in the block.
    fn thread(self) -> [u32; 3];
    /// Linear index of the thread in its block.
    fn linear_thread(self) -> u32;
    /// The warp's threads that run this together, one bit each.
    fn group(self) -> u32;
    /// Whether this thread is the first of a group that it belongs to.
    fn leads(self, group: u32) -> bool;
    /// Threads per block, all dimensions multiplied.
    fn block_threads(self) -> u32;
    /// Differs between grids that run at the same time.
    fn grid_id(self) -> u64;
    /// Dynamic shared memory of the block, bytes, as launched.
    fn dynamic_shared(self) -> u32;
    /// Static and dynamic shared memory, rounded up to 128 bytes.
    fn total_shared(self) -> u32;
    /// The address of a byte of the block's shared memory, usable in the methods above.
    fn shared_address(self, offset: u32) -> u64;
    /// Whether a generic address lies in global memory (and not in shared, local, constant or parameter memory).
    fn is_global(self, addr: u64) -> bool;
    /// The address of the module's [`crate::layout::ModuleState`].
    fn module(self) -> u64;
}

/// Reads and writes one field of a shared struct: `field!(m, addr, Struct, name)` is the field's address.
macro_rules! field {
    ($addr:expr, $ty:ty, $name:ident) => {
        $addr.wrapping_add(core::mem::offset_of!($ty, $name) as u64)
    };
}
pub(crate) use field;
