// Included once per cell format: `Format` is the cell, `REFERENCE` says which.

use crate::block;
use crate::cell::Cell;
use crate::clock::State;
use crate::detector;
use crate::host::{Device, Host, Shape};
use crate::layout::{Access, Op, Order, RaceClass, RaceKind, RaceRecord, Scope};
use std::vec::Vec;

/// What `program` finds when the detector lacks an edge.
#[cfg(feature = "mutants")]
fn without_edge<T>(edge: crate::mutants::Edge, program: impl FnOnce() -> T) -> T {
    crate::mutants::remove(Some(edge));
    let found = program();
    crate::mutants::remove(None);
    found
}

/// A block whose only thread (or whose chosen thread) acts.
#[derive(Clone, Copy)]
struct Block<'d> {
    device: &'d Device,
    host: Host,
}

/// A device with one launch of some single-threaded blocks, each on a multiprocessor of its own.
fn grid(device: &Device, launch: u32, base: u32, out: u32, blocks: u32) -> Vec<Block<'_>> {
    let record = device.launch(launch, base, out);
    (0..blocks)
        .map(|b| Block::enter(device, record, u64::from(launch), b, b))
        .collect()
}

impl<'d> Block<'d> {
    fn enter(device: &'d Device, record: u64, grid: u64, sm: u32, block: u32) -> Block<'d> {
        let host = device.thread(grid, sm, block, 0, 1);
        block::enter(host, record);
        Block { device, host }
    }

    fn state(self) -> State<Host> {
        State::at(self.host, block::state(self.host))
    }

    fn plain(self, access: Access, offset: u64, size: u32, site: u32) {
        let op = Op::new(access, size, Order::Weak, Scope::None);
        detector::access::<Format, _>(self.state(), self.device.real() + offset, op, site);
    }

    fn load(self, offset: u64) {
        self.plain(Access::Load, offset, 4, 1);
    }

    fn store(self, offset: u64) {
        self.plain(Access::Store, offset, 4, 2);
    }

    /// A strong access that reads, writes or both; a compare-and-swap that succeeds.
    fn strong(self, access: Access, order: Order, scope: Scope, offset: u64) {
        self.strong_at(self.device.real() + offset, access, order, scope, 4, true);
    }

    fn strong_at(
        self,
        addr: u64,
        access: Access,
        order: Order,
        scope: Scope,
        size: u32,
        success: bool,
    ) {
        let op = Op::new(access, size, order, scope);
        let context = detector::strong_before::<Format, _>(self.state(), addr, op, 3);
        if access != Access::Store {
            detector::strong_after::<Format, _>(self.state(), addr, op, 3, context, success);
        }
    }

    fn release(self, offset: u64) {
        self.strong(Access::Store, Order::Release, Scope::Gpu, offset);
    }

    fn acquire(self, offset: u64) {
        self.strong(Access::Load, Order::Acquire, Scope::Gpu, offset);
    }

    fn relaxed_store(self, offset: u64) {
        self.strong(Access::Store, Order::Relaxed, Scope::Gpu, offset);
    }

    fn relaxed_load(self, offset: u64) {
        self.strong(Access::Load, Order::Relaxed, Scope::Gpu, offset);
    }

    fn add(self, order: Order, offset: u64) {
        self.strong(Access::Rmw, order, Scope::Gpu, offset);
    }

    fn fence(self, order: Order, scope: Scope) {
        detector::fence::<Format, _>(self.state(), Op::new(Access::Fence, 0, order, scope));
    }

    fn exit(self) {
        block::exit(self.host);
    }
}

fn kinds(device: &Device) -> Vec<RaceKind> {
    device
        .races()
        .iter()
        .map(|r| match r.kind {
            1 => RaceKind::Raw,
            2 => RaceKind::War,
            _ => RaceKind::Waw,
        })
        .collect()
}

#[track_caller]
fn assert_silent(device: &Device) {
    assert_eq!(device.races(), Vec::<RaceRecord>::new());
}

#[track_caller]
fn only(device: &Device, kind: RaceKind, class: RaceClass) -> RaceRecord {
    let races = device.races();
    assert_eq!(races.len(), 1, "one finding expected: {races:?}");
    assert_eq!((races[0].kind, races[0].class), (kind as u32, class as u32));
    races[0]
}

fn device() -> Device {
    new_device(Shape::default())
}

/// A device whose shadow has this format's cells.
fn new_device(shape: Shape) -> Device {
    Device::new(Shape { cell: <Format as Cell>::STRIDE, ..shape })
}
