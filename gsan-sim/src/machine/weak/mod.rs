//! Weak memory: what stores become visible late and loads are satisfied early means, without a store buffer.
//!
//! A *view-based* machine, after the "promising" models. Each word of memory has a history of recent writes in coherence
//! order; each warp has a view: for each word the oldest write that it may still read. A load reads any write from there on,
//! chosen by the seed; a store goes behind everything in the view, mostly to the end, sometimes before writes that the
//! warp does not know. That alone gives store buffering, message passing without fences, IRIW, 2+2W and what is made of
//! them, and it keeps coherence. A read-modify-write reads the newest write, or one that the warp may still read and that its own can
//! follow at once. What remains needs accesses that are performed late: load buffering, and all of the above where the
//! other side meets them by atomics. `exec::weak` puts a load, store, atomic or reduction off as far as the next instruction
//! that depends on it or touches the same memory: over acquires if it is relaxed or a release, never over a release, a branch, a
//! fence or a barrier (so no value comes out of thin air).
//!
//! What orders, joins views:
//! * **release**: the write carries the writer's view (and whatever a release fence, or an earlier release of the same warp
//!   on this word, has put before it; a read-modify-write hands on what it found). **Acquire**: the reader joins it, if both
//!   operations are morally strong. Reading relaxed keeps it for a later acquire on the word, or fence. Views are joined
//!   whole, so order is cumulative.
//! * **`fence.sc`**: joins what earlier fences of the same scope knew, for either side's scope, and leaves its own view to later ones.
//! * **barriers** of a block or cluster: who leaves knows what those who arrived knew.
//! * **dependent launches**: their blocks begin with what was before the last fence of device scope of those that let them begin or have
//!   exited. (PTX is silent about that; a fence lasts until the stores before it are performed.)
//! * the end of a grid, and whatever the host does: all that is written is seen by all ([`Weak::settle`]).
//!
//! Memory itself always holds the last write in coherence order. Nothing stays invisible for long: a write *expires* after a
//! random number of steps, and then everybody sees it or a later one. So histories and views stay small, and who polls gets
//! on. Whatever wrote around the histories (a host's store to pinned memory) is noticed, because memory then differs from the
//! last write, and counts as seen by all.
//!
//! The *unit* of coherence is what an access covers: half a word of 8 bytes for scalar accesses of at most 4 bytes, else the word
//! (so that wide accesses are not torn). Who accesses a unit otherwise than it was of late makes everybody see everything:
//! seldom, and never wrong.
//!
//! Stronger than PTX, on purpose: the lanes of a warp are one thread; bytes of one unit are coherent with each other, and so are
//! elements of a vector that lie in one word; racing weak loads are coherent, too; accesses of 16 bytes as a whole are neither put
//! off nor stale; a copy that lands (`exec/late.rs`) is its thread's access, mbarriers acquire and release at system
//! scope, and what is computed from a value depends on it, even where a compiler sees that it does not (`xor r, r`).

mod history;
mod strength;
mod view;

pub use strength::{Order, Scope, Strength};

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;

use super::state::{BARRIERS, Block, State};
use history::{History, Message, bits};
use strength::{Who, morally_strong};
use view::{Release, View};

/// A write is seen by all after at most so many steps, all orders of magnitude being as likely.
const LONGEST: u32 = 14;
/// With so many writes that not everybody has seen, all become visible.
const MOST: usize = 1 << 16;
/// Distance of two writes in coherence order: others fit between.
const STRIDE: u64 = 1 << 20;

/// A warp as the memory model sees it.
#[derive(Debug, Clone, Default)]
struct Agent {
    who: Who,
    view: View,
    /// What the last release fence of each scope knew.
    fences: [View; 4],
    /// Releases by word: later strong stores to it carry them on.
    released: FxHashMap<u64, Vec<Release>>,
    /// Releases that relaxed loads have found, by word.
    pending: Vec<(u64, Release)>,
}

/// A block as the memory model sees it.
#[derive(Debug, Clone, Default)]
struct Resident {
    agents: Vec<Agent>,
    /// What those who have arrived at a barrier know.
    barriers: Vec<View>,
}

/// The state of weak memory.
#[derive(Debug)]
pub struct Weak {
    words: FxHashMap<u64, History>,
    /// Step, word, and write that everybody sees from then on.
    expiring: BinaryHeap<Reverse<(u64, u64, u64)>>,
    /// By block slot.
    blocks: Vec<Resident>,
    /// By cluster slot: of those who have arrived in the current phase, and of those of the last complete one.
    clusters: Vec<[View; 2]>,
    /// What `fence.sc`s knew: by scope, level at which sides are compared, device/cluster/block at that level.
    sc: FxHashMap<(Scope, Scope, u32), View>,
    /// What the blocks of dependent grids begin with.
    handed: View,
    rng: Xoshiro256PlusPlus,
    now: u64,
    stamp: u64,
    numbers: u32,
    /// The instruction that is being executed, its strength, and the lane.
    by: u64,
    strength: Strength,
    /// A compare-and-swap that fails does not write.
    only_reads: bool,
    /// The instruction's elements in one word belong together.
    vector: bool,
    /// What the instruction has read: lanes with one address read one value.
    chosen: Vec<(u64, u64)>,
}

/// Whose access it is: block slot and warp.
pub type At = (usize, u32);

/// An access of at most 8 bytes inside a word: the word, which bytes, and what memory holds there (or any bits elsewhere).
#[derive(Debug, Clone, Copy)]
pub struct Access {
    pub word: u64,
    pub bytes: u8,
    pub memory: u64,
}

impl Weak {
    pub fn new(seed: u64) -> Weak {
        Weak {
            words: FxHashMap::default(),
            expiring: BinaryHeap::new(),
            blocks: Vec::new(),
            clusters: Vec::new(),
            sc: FxHashMap::default(),
            handed: View::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x7765_616b),
            now: 0,
            stamp: 0,
            numbers: 0,
            by: 0,
            strength: Strength::WEAK,
            only_reads: false,
            vector: false,
            chosen: Vec::new(),
        }
    }

    /// Everybody sees everything.
    pub fn settle(&mut self) {
        self.words.clear();
        self.expiring.clear();
        self.chosen.clear();
    }

    /// A number that no other cluster (and, counted from it, none of its blocks) has.
    pub fn cluster(&mut self, slot: usize, blocks: u32) -> u32 {
        let first = self.numbers;
        self.numbers = self.numbers.wrapping_add(blocks.max(1));
        if self.clusters.len() <= slot {
            self.clusters.resize_with(slot + 1, Default::default);
        }
        self.clusters[slot] = Default::default();
        first
    }

    /// A block begins: the number of its cluster and its own.
    pub fn enter(&mut self, slot: usize, device: u32, [cluster, block]: [u32; 2], warps: usize) {
        if self.blocks.len() <= slot {
            self.blocks.resize_with(slot + 1, Resident::default);
        }
        let agents = (0..warps as u32).map(|warp| Agent {
            who: Who {
                device,
                cluster,
                block,
                warp,
            },
            ..Agent::default()
        });
        self.blocks[slot] = Resident {
            agents: agents.collect(),
            barriers: vec![View::default(); BARRIERS],
        };
    }

    /// The word of a block's shared memory.
    pub fn shared_word(&self, slot: usize, offset: u64) -> u64 {
        let block = self.blocks.get(slot).and_then(|b| b.agents.first());
        1 << 63 | u64::from(block.map_or(0, |a| a.who.block)) << 24 | offset & !7
    }

    /// The next instruction begins.
    pub fn begin(&mut self, now: u64, strength: Strength) {
        self.now = now;
        self.by += 32;
        self.strength = strength;
        self.only_reads = false;
        self.vector = false;
        self.chosen.clear();
        self.expire();
    }

    /// The instruction that has begun accesses vectors of that many bytes.
    pub fn be_vector(&mut self, bytes: usize) {
        self.vector = bytes >= 8;
    }

    /// The unit of coherence of an access to those bytes of a word (whose address is a multiple of 8). Whatever is there of
    /// other units of the word, all see.
    pub fn unit(&mut self, word: u64, bytes: u8) -> u64 {
        let halves = [word | 1, word | 2];
        let unit = match bytes {
            _ if self.vector => word,
            low if low & 0xf0 == 0 => halves[0],
            high if high & 0x0f == 0 => halves[1],
            _ => word,
        };
        let other = match unit == word {
            true => halves.iter().any(|half| self.words.contains_key(half)),
            false => self.words.contains_key(&word),
        };
        if other {
            self.settle();
        }
        unit
    }

    /// The operation that is being executed is as strong as an mbarrier's.
    pub fn be_mbarrier(&mut self) {
        self.strength = Strength::MBARRIER;
    }

    /// The compare-and-swap that is being executed has failed: what it stores next is no write.
    pub fn only_reads(&mut self) {
        self.only_reads = true;
    }

    /// A number below `n`.
    pub fn random(&mut self, n: u32) -> u32 {
        ((u64::from(self.rng.next_u32()) * u64::from(n)) >> 32) as u32
    }

    fn expire(&mut self) {
        if self.expiring.len() > MOST {
            self.settle();
        }
        while let Some(&Reverse((at, word, stamp))) = self.expiring.peek() {
            if at > self.now {
                break;
            }
            self.expiring.pop();
            if self
                .words
                .get_mut(&word)
                .is_some_and(|h| h.expire(stamp, at))
            {
                self.words.remove(&word);
            }
        }
    }

    fn agent(&mut self, (slot, warp): At) -> Option<&mut Agent> {
        self.blocks.get_mut(slot)?.agents.get_mut(warp as usize)
    }

    /// What a load reads, in the place of the word that memory has.
    pub fn load(&mut self, at: At, access: Access) -> u64 {
        let Access {
            word,
            bytes,
            memory,
        } = access;
        let Some(history) = self.words.get(&word) else {
            return memory;
        };
        if !history.agrees(memory, bytes) {
            self.words.remove(&word);
            return memory;
        }
        let (strength, now) = (self.strength, self.now);
        let last = history.messages.len() - 1;
        let newest = strength.whole || strength.rmw && !strength.reads_older();
        let known = self
            .blocks
            .get(at.0)
            .and_then(|b| b.agents.get(at.1 as usize));
        let first = history.first(known.map_or(0, |a| a.view.floor(word)));
        let pick = if newest || first == last {
            last
        } else if let Some(&(_, stamp)) = self.chosen.iter().find(|c| c.0 == word && !strength.rmw)
        {
            history.messages.partition_point(|m| m.stamp < stamp)
        } else {
            let n = (last - first + 1) as u32;
            let random = self.rng.next_u32();
            if random & 1 == 0 {
                last
            } else {
                first + ((random >> 1) % n) as usize
            }
        };
        let pick = match pick.clamp(first, last) {
            old if strength.rmw && !history.may_follow(old, bytes) => last,
            pick => pick,
        };
        let read = &history.messages[pick];
        self.chosen.push((word, read.stamp));
        let value = read.content & bits(history.known) | memory & !bits(history.known);
        let seen = (read.stamp, read.expires);
        let found: &[Release] = match (strength.scope, history.source(pick, bytes)) {
            (Some(scope), Some(m)) => match (m.scope, known) {
                (Some(other), Some(a)) if morally_strong(m.who, other, a.who, scope) => &m.releases,
                _ => &[],
            },
            _ => &[],
        };
        let agents = self.blocks.get_mut(at.0).map(|b| &mut b.agents);
        if let Some(agent) = agents.and_then(|a| a.get_mut(at.1 as usize)) {
            agent.view.raise(word, seen.0, seen.1, now);
            agent.found(word, found, now);
            if let Some(scope) = strength.scope.filter(|_| strength.acquires()) {
                agent.import(Some(word), scope, now);
            }
        }
        value
    }

    /// A store: whether memory itself changes (it holds the last write).
    pub fn store(&mut self, at: At, lane: u32, access: Access, value: u64) -> bool {
        let Access {
            word,
            bytes,
            memory,
        } = access;
        if std::mem::take(&mut self.only_reads) {
            return false;
        }
        let (strength, now) = (self.strength, self.now);
        // What a read-modify-write has read.
        let chosen = self.chosen.iter().rfind(|c| c.0 == word && strength.rmw);
        let read = chosen.map(|c| c.1);
        let releases = self.releases(at, word, bytes, read);
        let lifetime =
            1 + (self.rng.next_u32() & ((1 << (self.rng.next_u32() % (LONGEST + 1))) - 1));
        let random = self.rng.next_u32();
        let until = releases.iter().map(|r| r.view.until()).max().unwrap_or(0);
        let expires = (now + u64::from(lifetime)).max(until);
        let history = self.words.entry(word).or_insert_with(History::new);
        if !history.agrees(memory, bytes) {
            *history = History::new();
        }
        history.learn(memory, bytes);
        let by = self.by + u64::from(lane);
        let Some(agent) = self
            .blocks
            .get_mut(at.0)
            .and_then(|b| b.agents.get_mut(at.1 as usize))
        else {
            return true;
        };
        // The elements of a vector that lie in one word are stored together.
        if let Some(last) = history.messages.last_mut().filter(|m| m.by == by) {
            last.content = last.content & !bits(bytes) | value & bits(bytes);
            last.bytes |= bytes;
            return true;
        }
        let first = history.first(agent.view.floor(word));
        let end = history.messages.len();
        let earliest = if strength.rmw || strength.whole || random & 3 != 0 {
            end
        } else {
            history.earliest(first, bytes)
        };
        let place = match read {
            Some(stamp) => history.place_behind(stamp),
            None => earliest + ((random >> 2) as usize) % (end - earliest + 1),
        };
        let before = history.messages[place - 1].stamp;
        let stamp = match history.messages.get(place) {
            Some(after) => before + (after.stamp - before) / 2,
            None => {
                self.stamp += STRIDE;
                self.stamp
            }
        };
        let content = history.messages[place - 1].content & !bits(bytes) | value & bits(bytes);
        let message = Message {
            stamp,
            expires,
            content,
            bytes,
            who: agent.who,
            scope: strength.scope,
            rmw: strength.rmw,
            by,
            releases,
        };
        history.messages.insert(place, message);
        agent.view.raise(word, stamp, expires, now);
        self.expiring.push(Reverse((expires, word, stamp)));
        place == end
    }

    /// What a store to the word publishes, if it is half of a read-modify-write of what `read` has written.
    fn releases(&mut self, at: At, word: u64, bytes: u8, read: Option<u64>) -> Vec<Release> {
        let (strength, now) = (self.strength, self.now);
        let Some(scope) = strength.scope else {
            return Vec::new();
        };
        let handed_on = match self.words.get(&word) {
            Some(h) if strength.rmw => {
                let behind = read.map_or(h.messages.len(), |stamp| h.place_behind(stamp));
                h.source(behind - 1, bytes).cloned()
            }
            _ => None,
        };
        let Some(agent) = self.agent(at) else {
            return Vec::new();
        };
        let mut all: Vec<Release> = Vec::new();
        // Who acquires from one release acquires from each other of the same warp and scope, so that one entry says it all:
        // a word which many threads add to, an mbarrier before all, would otherwise gather one for each addition.
        let mut add = |r: Release| {
            if r.view.is_dead(now) {
                return;
            }
            match all
                .iter_mut()
                .find(|o| o.who == r.who && o.scope == r.scope)
            {
                Some(same) => same.view.join(&r.view, now),
                None => all.push(r),
            }
        };
        let who = agent.who;
        if strength.releases() {
            let view = agent.view.clone();
            add(Release { who, scope, view });
        }
        for (view, scope) in agent.fences.iter().zip(Scope::ALL) {
            let view = view.clone();
            add(Release { who, scope, view });
        }
        for r in agent.released.get(&word).into_iter().flatten() {
            add(r.clone());
        }
        if strength.releases() {
            if agent.released.len() > 64 {
                agent
                    .released
                    .retain(|_, r| r.iter().any(|r| !r.view.is_dead(now)));
            }
            // The newest of each scope says all that earlier ones did.
            let kept = agent.released.entry(word).or_default();
            kept.retain(|r| r.scope > scope && !r.view.is_dead(now));
            kept.push(Release {
                who,
                scope,
                view: agent.view.clone(),
            });
        }
        if let Some(m) = handed_on
            && let Some(other) = m.scope
            && morally_strong(m.who, other, who, scope)
        {
            // (Those of other warps are already one for each warp and scope.)
            let (own, others): (Vec<_>, Vec<_>) =
                m.releases.into_iter().partition(|r| r.who == who);
            own.into_iter().for_each(add);
            all.extend(others.into_iter().filter(|r| !r.view.is_dead(now)));
        }
        all
    }

    /// A fence.
    pub fn fence(&mut self, at: At) {
        let (strength, now) = (self.strength, self.now);
        let (Some(scope), order) = (strength.scope, strength.order) else {
            return;
        };
        let Some(agent) = self.agent(at) else { return };
        if strength.acquires() {
            agent.import(None, scope, now);
        }
        let who = agent.who;
        let mut view = agent.view.clone();
        if order == Order::Sc {
            // Two fences are morally strong if they share the place that the narrower scope names.
            let place = |scope| match scope {
                Scope::Cta => who.block,
                Scope::Cluster => who.cluster,
                Scope::Gpu => who.device,
                Scope::Sys => 0,
            };
            for theirs in Scope::ALL {
                let level = scope.min(theirs);
                if let Some(known) = self.sc.get(&(theirs, level, place(level))) {
                    view.join(known, now);
                }
            }
            for level in Scope::ALL.into_iter().filter(|&level| level <= scope) {
                let known = self.sc.entry((scope, level, place(level))).or_default();
                known.join(&view, now);
            }
            if self.sc.len() > 256 {
                self.sc.retain(|_, v| !v.is_dead(now));
            }
        }
        if let Some(agent) = self.agent(at) {
            if strength.releases() {
                agent.fences[scope as usize] = view.clone();
            }
            agent.view = view;
        }
    }

    /// A thread lets dependent grids begin, or exits.
    pub fn hand_over(&mut self, at: At) {
        let now = self.now;
        let Some(fences) = self.agent(at).map(|a| a.fences.clone()) else {
            return;
        };
        for scope in [Scope::Gpu, Scope::Sys] {
            self.handed.join(&fences[scope as usize], now);
        }
    }

    /// A block of a dependent grid has begun.
    pub fn take_over(&mut self, slot: usize) {
        for agent in self
            .blocks
            .get_mut(slot)
            .into_iter()
            .flat_map(|b| &mut b.agents)
        {
            agent.view = self.handed.clone();
        }
    }

    /// A warp arrives at a barrier of its block.
    pub fn arrive(&mut self, (slot, warp): At, id: usize) {
        let now = self.now;
        if let Some(block) = self.blocks.get_mut(slot)
            && let (Some(agent), Some(barrier)) =
                (block.agents.get(warp as usize), block.barriers.get_mut(id))
        {
            barrier.join(&agent.view, now);
        }
    }

    /// A barrier's phase ends: who waits goes on.
    pub fn leave(&mut self, slot: usize, block: &Block, id: usize) {
        let now = self.now;
        let Some(resident) = self.blocks.get_mut(slot) else {
            return;
        };
        let known = std::mem::take(&mut resident.barriers[id]);
        for (warp, agent) in block.warps.iter().zip(&mut resident.agents) {
            let waits = |state: State| state == State::Barrier(id as u8);
            if warp.groups.iter().any(|g| waits(g.state)) {
                agent.view.join(&known, now);
            }
        }
    }

    /// A warp arrives at its cluster's barrier.
    pub fn arrive_cluster(&mut self, at: At, cluster: usize) {
        let now = self.now;
        let Some(view) = self.agent(at).map(|a| a.view.clone()) else {
            return;
        };
        if let Some([arriving, _]) = self.clusters.get_mut(cluster) {
            arriving.join(&view, now);
        }
    }

    /// A phase of the cluster's barrier is complete.
    pub fn complete_cluster(&mut self, cluster: usize) {
        if let Some([arriving, complete]) = self.clusters.get_mut(cluster) {
            *complete = std::mem::take(arriving);
        }
    }

    /// A warp has waited for it.
    pub fn leave_cluster(&mut self, at: At, cluster: usize) {
        let now = self.now;
        let Some([_, complete]) = self.clusters.get(cluster).cloned() else {
            return;
        };
        if let Some(agent) = self.agent(at) {
            agent.view.join(&complete, now);
        }
    }
}

impl Agent {
    /// A strong load has found releases.
    fn found(&mut self, word: u64, releases: &[Release], now: u64) {
        for r in releases.iter().filter(|r| !r.view.is_dead(now)) {
            if !self.pending.iter().any(|(w, p)| *w == word && p.is(r)) {
                if self.pending.len() >= 64 {
                    self.pending.retain(|(_, p)| !p.view.is_dead(now));
                }
                self.pending.push((word, r.clone()));
            }
        }
    }

    /// An acquire: on one word, or a fence. What it does not reach waits for a wider one.
    fn import(&mut self, word: Option<u64>, scope: Scope, now: u64) {
        let (who, view) = (self.who, &mut self.view);
        self.pending.retain(|(w, release)| {
            let reached = word.is_none_or(|word| word == *w) && release.reaches(who, scope);
            if reached {
                view.join(&release.view, now);
            }
            !reached && !release.view.is_dead(now)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_additions_carries_one_release_for_each_warp_and_scope() {
        let mut weak = Weak::new(1);
        let warps = 4;
        weak.enter(0, 0, [0, 1], warps);
        let mut access = Access {
            word: 64,
            bytes: 0xff,
            memory: 0,
        };
        for step in 0..1000 {
            let at = (0, (step % warps as u64) as u32);
            weak.begin(step, Strength::MBARRIER);
            let value = weak.load(at, access);
            assert_eq!(value, step);
            assert!(weak.store(at, 0, access, value + 1));
            access.memory = value + 1;
        }
        let messages = weak.words.values().flat_map(|h| &h.messages);
        let most = messages.map(|m| m.releases.len()).max();
        assert!(most.is_some_and(|n| n <= warps), "{most:?}");
    }
}
