//! What an instruction does, in one word.

use bytemuck::{Pod, Zeroable};

/// The site of an access that stands in no module: an operation of the host.
pub const NO_SITE: u32 = 0x7fff_ffff;

/// Who an operation synchronises with. The numbers are part of [`Op`] and of the hooks' interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Scope {
    /// Not a synchronising operation.
    None = 0,
    /// The block.
    Cta = 1,
    /// The cluster. The reference cell, which has two bits for the scope, keeps it as `Gpu`.
    Cluster = 2,
    /// The device.
    Gpu = 3,
    /// All devices and the host.
    Sys = 4,
}

/// The ordering of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Order {
    /// Plain: a race with any conflicting access that is not ordered.
    Weak = 0,
    /// Atomic without ordering (also `volatile`, which is relaxed at system scope).
    Relaxed = 1,
    /// Acquire.
    Acquire = 2,
    /// Release.
    Release = 3,
    /// Both.
    AcqRel = 4,
    /// Sequentially consistent.
    Sc = 5,
}

impl Order {
    /// Whether what follows is ordered after it.
    pub const fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::Sc)
    }

    /// Whether what precedes is ordered before it.
    pub const fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::Sc)
    }
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Access {
    /// Reads.
    Load = 0,
    /// Writes.
    Store = 1,
    /// Reads and writes in one step (`atom`, `red`, exchange).
    Rmw = 2,
    /// Reads, and writes if the comparison holds.
    Cas = 3,
    /// No access: a fence.
    Fence = 4,
}

/// The second argument of every hook: what the instruction is, in one word.
///
/// | bits | field |
/// |---|---|
/// | 0–9 | size in bytes |
/// | 10–12 | [`Access`] |
/// | 13–15 | [`Order`] |
/// | 16–18 | [`Scope`] |
/// | 19 | `volatile` |
/// | 20 | non-coherent (`ld.global.nc`) |
/// | 21 | the address is generic: it may lie outside global memory |
/// | 22–24 | log2 of the number of elements (vectors and packed types: a set of scalar accesses) |
/// | 25 | carried out later: `cp.async`, until its thread has waited |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Op(pub u32);

impl Op {
    /// Builds the word; `size` below 1024.
    pub const fn new(access: Access, size: u32, order: Order, scope: Scope) -> Op {
        Op((size & 0x3ff) | (access as u32) << 10 | (order as u32) << 13 | (scope as u32) << 16)
    }

    /// The same operation on another number of bytes.
    pub const fn with_size(self, size: u32) -> Op {
        Op(self.0 & !0x3ff | size & 0x3ff)
    }

    /// Sets the `volatile` bit.
    pub const fn volatile(self) -> Op {
        Op(self.0 | 1 << 19)
    }

    /// Sets the non-coherent bit.
    pub const fn non_coherent(self) -> Op {
        Op(self.0 | 1 << 20)
    }

    /// Sets the generic-address bit.
    pub const fn generic(self) -> Op {
        Op(self.0 | 1 << 21)
    }

    /// Sets the number of elements, a power of two up to 128: the access is that many scalar ones, side by side.
    pub const fn elements(self, elements: u32) -> Op {
        Op(self.0 & !(7 << 22) | (elements.trailing_zeros() & 7) << 22)
    }

    /// Sets the bit of what is carried out later.
    pub const fn asynchronous(self) -> Op {
        Op(self.0 | 1 << 25)
    }

    /// Whether it is carried out later.
    pub const fn is_asynchronous(self) -> bool {
        self.0 & 1 << 25 != 0
    }

    /// The same operation as another access.
    pub const fn as_access(self, access: Access) -> Op {
        Op(self.0 & !(7 << 10) | (access as u32) << 10)
    }

    /// The read of a compare-and-swap, as the wide cell keeps it until it is known whether it writes: a load with an order
    /// that no load has.
    pub const fn attempt(self) -> Op {
        Op::new(Access::Load, self.size(), Order::AcqRel, self.scope())
    }

    /// Whether it is [`Op::attempt`]; the order is not known then.
    pub const fn is_attempt(self) -> bool {
        matches!((self.access(), self.order()), (Access::Load, Order::AcqRel))
    }

    /// Bytes of one element.
    pub const fn element_size(self) -> u32 {
        self.size() >> (self.0 >> 22 & 7)
    }

    /// Size in bytes.
    pub const fn size(self) -> u32 {
        self.0 & 0x3ff
    }

    /// What it does.
    pub const fn access(self) -> Access {
        match (self.0 >> 10) & 7 {
            0 => Access::Load,
            1 => Access::Store,
            2 => Access::Rmw,
            3 => Access::Cas,
            _ => Access::Fence,
        }
    }

    /// Its ordering.
    pub const fn order(self) -> Order {
        match (self.0 >> 13) & 7 {
            0 => Order::Weak,
            1 => Order::Relaxed,
            2 => Order::Acquire,
            3 => Order::Release,
            4 => Order::AcqRel,
            _ => Order::Sc,
        }
    }

    /// Its scope.
    pub const fn scope(self) -> Scope {
        match (self.0 >> 16) & 7 {
            0 => Scope::None,
            1 => Scope::Cta,
            2 => Scope::Cluster,
            3 => Scope::Gpu,
            _ => Scope::Sys,
        }
    }

    /// Whether it was written as `volatile`.
    pub const fn is_volatile(self) -> bool {
        self.0 & 1 << 19 != 0
    }

    /// Whether it reads through the non-coherent path.
    pub const fn is_non_coherent(self) -> bool {
        self.0 & 1 << 20 != 0
    }

    /// Whether its address is generic.
    pub const fn is_generic(self) -> bool {
        self.0 & 1 << 21 != 0
    }
}
