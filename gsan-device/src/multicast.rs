//! `multimem`: one instruction accesses the memory of several devices, all that is bound to a multicast object.
//!
//! The host knows what a range of multicast addresses stands for and keeps that in a table ([`Multicast`]); each such
//! instruction is an access of every memory that it finds there, at that memory's own address: its shadow is the one that
//! all other accesses look at. gsan-ptx gives the operation system scope, whatever is written there.
//!
//! Where the table has nothing (a mapping that the program made itself) the access is counted
//! ([`Counters::unknown_multicasts`]) and not checked. What is strong among those releases and acquires by the multicast
//! address, as elsewhere outside of all shadow, which adds order.

use crate::cell::Cell;
use crate::clock::State;
use crate::copies::{strong, weak};
use crate::detector;
use crate::layout::{Counters, GlobalState, Multicast, Op, Order};
use crate::machine::{Machine, field};
use crate::mutants::{Edge, without};
use core::mem::{offset_of, size_of};

/// Before the access. The result goes to [`after`].
pub fn before<C: Cell, M: Machine>(me: State<M>, addr: u64, op: Op, site: u32) -> u64 {
    let mut context = 0;
    let known = each(me, addr, op.size(), |memory| {
        if op.order() == Order::Weak {
            weak::<C, M>(me.m, me.addr, memory, op, site);
        } else {
            let of_memory = strong::<C, M>(me.m, me.addr, memory, op, site);
            context = C::join_contexts(context, of_memory);
        }
    });
    if !known {
        me.tally(offset_of!(Counters, unknown_multicasts));
        if op.order() != Order::Weak {
            strong::<C, M>(me.m, me.addr, addr, op, site);
        }
    }
    context
}

/// After a strong `ld_reduce`.
pub fn after<C: Cell, M: Machine>(me: State<M>, addr: u64, op: Op, site: u32, context: u64) {
    let known = each(me, addr, op.size(), |memory| {
        read::<C, M>(me.m, me.addr, memory, op, site, context);
    });
    if !known {
        read::<C, M>(me.m, me.addr, addr, op, site, context);
    }
}

#[inline(never)]
fn read<C: Cell, M: Machine>(m: M, me: u64, addr: u64, op: Op, site: u32, context: u64) {
    detector::strong_after::<C, M>(State::at(m, me), addr, op, site, context, true);
}

/// Calls `f` with the own address of each memory of which all of the access is bound there; false: there is none.
fn each<M: Machine>(me: State<M>, addr: u64, size: u32, mut f: impl FnMut(u64)) -> bool {
    let m = me.m;
    let table = m.load64(field!(me.global(), GlobalState, multicasts));
    let count = m.load32(field!(me.global(), GlobalState, num_multicasts));
    let mut known = false;
    let mut i = 0;
    while i < count && !without(Edge::Multicast) {
        let entry = table.wrapping_add(size_of::<Multicast>() as u64 * i as u64);
        let at = addr.wrapping_sub(m.load64(field!(entry, Multicast, start)));
        let bound = m.load64(field!(entry, Multicast, size));
        if at < bound && size as u64 <= bound.wrapping_sub(at) {
            known = true;
            f(m.load64(field!(entry, Multicast, memory)).wrapping_add(at));
        }
        i += 1;
    }
    known
}
