//! How strong a memory operation is: order and scope, as the instruction's words say, and who is in whose scope.

/// How far an operation reaches, narrow to wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

impl Scope {
    pub const ALL: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
}

/// What an operation orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Sc,
}

/// Order and scope of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strength {
    pub order: Order,
    /// `None`: a weak access, or an instruction that is none.
    pub scope: Option<Scope>,
    /// Its write comes right behind what it has read: `atom`, `red`, mbarriers.
    pub rmw: bool,
    /// It must be seen as a whole although it is wider than a word: `.b128`.
    pub whole: bool,
}

impl Strength {
    pub const WEAK: Strength = Strength {
        order: Order::Relaxed,
        scope: None,
        rmw: false,
        whole: false,
    };

    /// Operations on mbarriers. PTX has weaker forms, which may be as strong.
    pub const MBARRIER: Strength = Strength {
        order: Order::AcqRel,
        scope: Some(Scope::Sys),
        rmw: true,
        whole: false,
    };

    /// Copies and reductions by the copy engines: weak, but a sum must not lose what it adds to.
    pub const COPY: Strength = Strength {
        order: Order::Relaxed,
        scope: None,
        rmw: true,
        whole: false,
    };

    pub fn acquires(self) -> bool {
        matches!(self.order, Order::Acquire | Order::AcqRel | Order::Sc)
    }

    pub fn releases(self) -> bool {
        matches!(self.order, Order::Release | Order::AcqRel | Order::Sc)
    }

    /// Whether a read-modify-write may read an older value, if its own write then comes right behind: `atom` and `red`.
    pub fn reads_older(self) -> bool {
        self.scope.is_some() && self != Strength::MBARRIER
    }

    /// Of an instruction by its opcode and the words behind it.
    pub fn parse<'w>(opcode: &str, words: impl Iterator<Item = &'w str>) -> Strength {
        let (mut order, mut scope, mut volatile, mut whole) = (None, None, false, false);
        let mut reduction = false;
        for word in words {
            match word {
                "relaxed" => order = Some(Order::Relaxed),
                "acquire" => order = Some(Order::Acquire),
                "release" => order = Some(Order::Release),
                "acq_rel" => order = Some(Order::AcqRel),
                "sc" => order = Some(Order::Sc),
                "volatile" | "mmio" => volatile = true,
                "cta" => scope = Some(Scope::Cta),
                "cluster" => scope = Some(Scope::Cluster),
                "gpu" | "gl" => scope = Some(Scope::Gpu),
                "sys" => scope = Some(Scope::Sys),
                "b128" => whole = true,
                "red" => reduction = true,
                _ => {}
            }
        }
        let strong = |order, scope, rmw| Strength {
            order,
            scope: Some(scope),
            rmw,
            whole,
        };
        match opcode {
            "ld" | "st" if volatile => strong(Order::Relaxed, Scope::Sys, false),
            "ld" | "st" => match order {
                Some(order) => strong(order, scope.unwrap_or(Scope::Sys), false),
                None => Strength {
                    whole,
                    ..Strength::WEAK
                },
            },
            "atom" | "red" => strong(
                order.unwrap_or(Order::Relaxed),
                scope.unwrap_or(Scope::Gpu),
                true,
            ),
            "sured" => strong(Order::Relaxed, Scope::Gpu, true),
            // Whatever else uses that memory comes from other devices too.
            "multimem" if reduction => strong(order.unwrap_or(Order::Relaxed), Scope::Sys, true),
            "multimem" => match order {
                Some(order) => strong(order, Scope::Sys, false),
                None => Strength::WEAK,
            },
            "mbarrier" => Strength::MBARRIER,
            "membar" => match scope {
                Some(scope) => strong(Order::Sc, scope, false),
                None => Strength::WEAK,
            },
            // Proxy fences have no scope.
            "fence" => match scope {
                Some(scope) => strong(order.unwrap_or(Order::AcqRel), scope, false),
                None => Strength::WEAK,
            },
            _ => Strength::WEAK,
        }
    }
}

/// Who runs: a warp. Its lanes count as one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Who {
    pub device: u32,
    /// Numbers that are never used twice.
    pub cluster: u32,
    pub block: u32,
    pub warp: u32,
}

impl Who {
    /// Whether an operation of this scope by `self` includes `other`.
    pub fn includes(self, scope: Scope, other: Who) -> bool {
        match scope {
            Scope::Cta => self.block == other.block,
            Scope::Cluster => self.cluster == other.cluster,
            Scope::Gpu => self.device == other.device,
            Scope::Sys => true,
        }
    }
}

/// Whether two strong operations are morally strong: each in the other's scope, or both in one warp.
pub fn morally_strong(a: Who, a_scope: Scope, b: Who, b_scope: Scope) -> bool {
    (a.block == b.block && a.warp == b.warp) || (a.includes(a_scope, b) && b.includes(b_scope, a))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Strength {
        let mut words = text.split('.');
        Strength::parse(words.next().unwrap_or_default(), words)
    }

    #[test]
    fn words_are_read_in_any_order_and_defaults_are_those_of_ptx() {
        assert_eq!(of("ld.global.u32"), Strength::WEAK);
        assert_eq!(of("ld.global.nc.u32"), Strength::WEAK);
        assert_eq!(of("ld.gpu.acquire.b64"), of("ld.acquire.gpu.global.u32"));
        assert_eq!(of("st.volatile.global.u32").scope, Some(Scope::Sys));
        let add = of("atom.global.add.u32");
        assert_eq!((add.order, add.scope), (Order::Relaxed, Some(Scope::Gpu)));
        assert!(add.rmw && !add.acquires() && !add.releases());
        assert!(of("red.release.cta.global.add.u32").releases());
        assert_eq!(of("membar.gl"), of("fence.sc.gpu"));
        assert_eq!(of("membar.cta").order, Order::Sc);
        assert_eq!(of("fence.proxy.async"), Strength::WEAK);
        assert!(of("ld.relaxed.gpu.b128").whole);
        assert_eq!(of("multimem.ld_reduce.global.add.u32"), Strength::WEAK);
        let red = of("multimem.red.global.add.u32");
        assert_eq!(red, of("red.relaxed.sys.global.add.u32"));
        assert!(of("multimem.ld_reduce.acquire.gpu.global.add.u32").acquires());
    }

    #[test]
    fn scopes_must_include_each_other() {
        let a = Who::default();
        let other_block = Who { block: 1, ..a };
        let other_device = Who {
            device: 1,
            cluster: 2,
            block: 2,
            warp: 0,
        };
        assert!(morally_strong(a, Scope::Cta, a, Scope::Cta));
        assert!(!morally_strong(a, Scope::Cta, other_block, Scope::Sys));
        assert!(morally_strong(a, Scope::Cluster, other_block, Scope::Gpu));
        assert!(!morally_strong(a, Scope::Sys, other_device, Scope::Gpu));
        assert!(morally_strong(a, Scope::Sys, other_device, Scope::Sys));
    }
}
