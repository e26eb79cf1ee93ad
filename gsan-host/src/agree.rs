//! Compile-time proof that gsan-ptx, which builds the hooks' operation word, and gsan-device, which reads it, agree bit
//! by bit. gsan-ptx does not depend on gsan-device, so this is the first place that sees both.

use gsan_device::layout::{Access as DeviceAccess, Op, Order as DeviceOrder, Scope as DeviceScope};
use gsan_ptx::hook::{Access, OpWord, Order, Scope};

const ACCESSES: [(Access, DeviceAccess); 5] = [
    (Access::Load, DeviceAccess::Load),
    (Access::Store, DeviceAccess::Store),
    (Access::Rmw, DeviceAccess::Rmw),
    (Access::Cas, DeviceAccess::Cas),
    (Access::Fence, DeviceAccess::Fence),
];
const ORDERS: [(Order, DeviceOrder); 6] = [
    (Order::Weak, DeviceOrder::Weak),
    (Order::Relaxed, DeviceOrder::Relaxed),
    (Order::Acquire, DeviceOrder::Acquire),
    (Order::Release, DeviceOrder::Release),
    (Order::AcqRel, DeviceOrder::AcqRel),
    (Order::Sc, DeviceOrder::Sc),
];
const SCOPES: [(Scope, DeviceScope); 5] = [
    (Scope::None, DeviceScope::None),
    (Scope::Cta, DeviceScope::Cta),
    (Scope::Cluster, DeviceScope::Cluster),
    (Scope::Gpu, DeviceScope::Gpu),
    (Scope::Sys, DeviceScope::Sys),
];

const _: () = {
    let mut a = 0;
    while a < ACCESSES.len() {
        let mut o = 0;
        while o < ORDERS.len() {
            let mut s = 0;
            while s < SCOPES.len() {
                let mut size = 0;
                while size < 1024 {
                    let ours = OpWord::new(ACCESSES[a].0, size, ORDERS[o].0, SCOPES[s].0);
                    let theirs = Op::new(ACCESSES[a].1, size, ORDERS[o].1, SCOPES[s].1);
                    assert!(ours.0 == theirs.0);
                    assert!(theirs.access() as u8 == ACCESSES[a].1 as u8);
                    assert!(theirs.order() as u8 == ORDERS[o].1 as u8);
                    assert!(theirs.scope() as u8 == SCOPES[s].1 as u8);
                    assert!(theirs.size() == size);
                    // Every bit of the size once.
                    size = if size == 0 { 1 } else { size * 2 };
                }
                s += 1;
            }
            o += 1;
        }
        a += 1;
    }
    let plain = OpWord(0);
    assert!(plain.with(OpWord::VOLATILE, true).0 == Op(0).volatile().0);
    assert!(plain.with(OpWord::NON_COHERENT, true).0 == Op(0).non_coherent().0);
    assert!(plain.with(OpWord::GENERIC, true).0 == Op(0).generic().0);
    assert!(plain.with(OpWord::ASYNCHRONOUS, true).0 == Op(0).asynchronous().0);
    let mut log = 0;
    while log < 8 {
        assert!(plain.elements(1 << log).0 == Op(0).elements(1 << log).0);
        log += 1;
    }
};
