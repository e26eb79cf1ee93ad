//! The detector's hooks, as instrumented code calls them.

use crate::boxes;
use crate::program::{Access, AsyncCopy, Kind, Transfer};
use crate::removed::{Part, without};
use crate::setup::Format;
use gsan_device::clock::State;
use gsan_device::host::Host;
use gsan_device::layout::{self, Op as Word, Order, PendingCopy, Scope, TensorMap};
use gsan_device::reference::ReferenceCell;
use gsan_device::wide::Wide;
use gsan_device::{block, cluster, copies, detector};

/// An expression in which the named type is a format's cell.
macro_rules! with_cell {
    ($format:expr, $cell:ident => $call:expr) => {
        match $format {
            Format::Reference => {
                type $cell = ReferenceCell;
                $call
            }
            Format::Wide => {
                type $cell = Wide;
                $call
            }
        }
    };
}

/// The hooks of the detector with a format's cells.
#[derive(Clone, Copy)]
pub(super) struct Hooks(pub(super) Format);

impl Hooks {
    /// Before an access; a strong one's context.
    pub(super) fn before(self, me: State<Host>, addr: u64, access: &Access, site: u32) -> u64 {
        let op = word(access);
        if access.scope == Scope::None {
            with_cell!(self.0, C => detector::access::<C, Host>(me, addr, op, site));
            return 0;
        }
        with_cell!(self.0, C => detector::strong_before::<C, Host>(me, addr, op, site))
    }

    /// After a strong access that reads.
    pub(super) fn after(
        self,
        me: State<Host>,
        addr: u64,
        access: &Access,
        site: u32,
        context: u64,
        success: bool,
    ) {
        let op = word(access);
        with_cell!(self.0, C => detector::strong_after::<C, Host>(me, addr, op, site, context, success));
    }

    /// Before a fence.
    pub(super) fn fence(self, me: State<Host>, order: Order, scope: Scope) {
        let op = Word::new(layout::Access::Fence, 0, order, scope);
        with_cell!(self.0, C => detector::fence::<C, Host>(me, op));
    }

    /// Before a copy of `addr`, or of a box through the map that lies there. `phase`: the present phase of the own block's mbarrier that it
    /// completes on, or 0.
    pub(super) fn copy(self, me: State<Host>, addr: u64, copy: &AsyncCopy, site: u32, phase: u32) {
        let bytes = copy.place.size;
        let weak = |access| Word::new(access, bytes, Order::Weak, Scope::None);
        let op = match copy.what {
            Transfer::Small => {
                let op = weak(layout::Access::Load).asynchronous();
                with_cell!(self.0, C => detector::access::<C, Host>(me, addr, op, site));
                return;
            }
            Transfer::Fetch(_) | Transfer::Multicast { .. } => weak(layout::Access::Load),
            Transfer::Put(_) => weak(layout::Access::Store),
            Transfer::Reduce(_) => Word::new(layout::Access::Rmw, 4, Order::Relaxed, Scope::Gpu),
        };
        match copy.corner {
            Some(corner) => {
                let corner = [corner.x, corner.y, 0, 0, 0];
                with_cell!(self.0, C => copies::issue_box::<C, Host>(me, addr, 0, corner, op, site, phase));
            }
            None => {
                with_cell!(self.0, C => copies::issue::<C, Host>(me, addr, bytes, op, site, phase));
            }
        }
        let releases = match copy.what {
            Transfer::Fetch(_) => true,
            Transfer::Multicast { .. } => !without(Part::MulticastRelease),
            _ => false,
        };
        if releases {
            // Written as a copy to `shared::cluster`, its end releases at an mbarrier of the cluster.
            self.cluster_release(me);
        }
    }

    /// After a wait for bulk groups.
    pub(super) fn copy_wait(self, me: State<Host>, groups: u32) {
        with_cell!(self.0, C => copies::wait::<C, Host>(me, groups));
    }

    /// After a wait for an mbarrier.
    pub(super) fn waited(self, me: State<Host>, phase: u32) {
        with_cell!(self.0, C => copies::waited::<C, Host>(me, phase));
        self.cluster_acquire(me);
    }

    /// Before the cluster's barrier.
    pub(super) fn cluster_arrive(self, me: State<Host>) {
        with_cell!(self.0, C => cluster::arrive::<C, Host>(me));
    }

    /// Before a write to shared memory that others of the cluster may see.
    pub(super) fn cluster_release(self, me: State<Host>) {
        with_cell!(self.0, C => cluster::release::<C, Host>(me));
    }

    /// After the cluster's barrier.
    pub(super) fn cluster_acquire(self, me: State<Host>) {
        with_cell!(self.0, C => cluster::acquire::<C, Host>(me));
    }

    /// Before a thread leaves.
    pub(super) fn leave(self, host: Host) {
        let me = State::at(host, block::state(host));
        copies::landed(me);
        with_cell!(self.0, C => copies::leave::<C, Host>(me));
        block::exit(host);
    }
}

/// What the host has told the detector of the program's tensor, whose memory begins at `memory`.
pub(super) fn tensor_map(memory: u64) -> TensorMap {
    let [mut words, rows] = boxes::EXTENTS;
    let [width, mut height] = boxes::BOX;
    if without(Part::BoxRows) {
        height = 1;
    }
    if without(Part::BoxClip) {
        words = boxes::STRIDE / 4;
    }
    TensorMap {
        // The driver's own bits are anything.
        bits: [0x6d61_7000_0000_0001; 16],
        address: memory + u64::from(boxes::AT),
        extents: [words.into(), rows.into(), 1, 1, 1],
        strides: [boxes::STRIDE.into(), 0, 0, 0],
        boxes: [width, height, 1, 1, 1],
        steps: [1; 5],
        rank: 2,
        element: 4,
        ..TensorMap::default()
    }
}

/// The name that the hooks have for a phase of an mbarrier.
pub(super) fn phase_name(index: usize, phase: u32) -> u32 {
    (0x40 + 8 * index as u32) | PendingCopy::PHASE | phase & 1
}

/// The hooks' word for an access.
fn word(access: &Access) -> Word {
    let kind = match access.kind {
        Kind::Load => layout::Access::Load,
        Kind::Store(_) | Kind::Paste => layout::Access::Store,
        Kind::Cas { .. } => layout::Access::Cas,
        Kind::Add(_) | Kind::Exchange(_) | Kind::Reduce(_) => layout::Access::Rmw,
    };
    let word = Word::new(kind, access.place.size, access.order, access.scope);
    if access.volatile {
        word.volatile()
    } else {
        word
    }
}
