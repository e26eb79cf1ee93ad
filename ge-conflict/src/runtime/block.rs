//! Blocks of memory that several streams use, and what becomes of them when a stream is done with one.
//!
//! * birth: nobody uses it and it is back on the stream that made it: the physical memory is free again;
//! * borrow: nobody uses it, but it is freed on another stream: that stream may use it for itself;
//! * local: somebody still uses it: it waits on that stream's list until an event brings the news.

use super::mif::Mif;
use crate::shared::{Epoch, ScalarClock, stream_use};

/// Why an operation on a block was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// A stream that is not there.
    #[error(
        "there is no stream {0}: streams are numbered from 0 below the count given to the pool"
    )]
    NoStream(usize),
    /// A block that is not there, or not any more.
    #[error("there is no block {0}: it was never allocated")]
    NoBlock(usize),
    /// It still holds memory.
    #[error("block {0} still holds memory: free it before it is used again")]
    Live(usize),
    /// More was freed than used.
    #[error("stream {stream} does not use block {block}: every free needs a use before it")]
    NotUsed {
        /// The stream.
        stream: usize,
        /// The block.
        block: usize,
    },
}

/// How a block was recycled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recycle {
    /// Not yet: the stream has further uses.
    None,
    /// Back to where it was made.
    Birth,
    /// Into another stream's pool.
    Borrow,
    /// On a list, until others are done.
    Local,
}

/// One block.
#[derive(Clone, Debug)]
pub struct Block {
    /// The stream that made it.
    pub birth: usize,
    /// Size in bytes.
    pub size: u64,
    /// Whether it holds physical memory.
    pub live: bool,
    /// Grows with every recycling: news about an older version is stale.
    pub version: u64,
    /// Uses by stream.
    pub counts: Vec<u32>,
    /// Who still uses it.
    pub mif: Mif,
    /// The last use by each stream, in the detector's words.
    pub last_use: Vec<ScalarClock>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    block: usize,
    version: u64,
    sent: u64,
}

/// The blocks of a device and each stream's lists.
#[derive(Clone, Debug)]
pub struct Pools {
    streams: usize,
    blocks: Vec<Block>,
    /// By stream: blocks it borrowed, by size and number: the smallest that fits is taken.
    borrow: Vec<std::collections::BTreeSet<(u64, usize)>>,
    /// By stream: recycled locally, waiting for others.
    local: Vec<Vec<Waiting>>,
    /// By stream: whole blocks that are free.
    free: Vec<std::collections::BTreeSet<(u64, usize)>>,
    epoch: Epoch,
}

impl Pools {
    /// Pools for that many streams (at most 64).
    pub fn new(streams: usize) -> Pools {
        let streams = streams.min(super::mif::MAX_STREAMS);
        Pools {
            streams,
            blocks: Vec::new(),
            borrow: vec![Default::default(); streams],
            local: vec![Vec::new(); streams],
            free: vec![Default::default(); streams],
            epoch: 0,
        }
    }

    /// Number of streams.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// A block.
    pub fn block(&self, id: usize) -> Option<&Block> {
        self.blocks.get(id)
    }

    fn stream(&self, s: usize) -> Result<usize, BlockError> {
        if s < self.streams {
            Ok(s)
        } else {
            Err(BlockError::NoStream(s))
        }
    }

    /// Memory for a stream: its own free block, else a borrowed one (the smallest that is large enough), else a new one.
    pub fn malloc(&mut self, stream: usize, size: u64) -> Result<usize, BlockError> {
        self.stream(stream)?;
        let fitting =
            |set: &std::collections::BTreeSet<(u64, usize)>| set.range((size, 0)..).next().copied();
        if let Some(key) = fitting(&self.free[stream]) {
            self.free[stream].remove(&key);
            self.reinit(key.1, stream)?;
            return Ok(key.1);
        }
        // The key is the block's own size, which is also what it was filed under: taking it out leaves nothing behind.
        if let Some(key) = fitting(&self.borrow[stream]) {
            self.borrow[stream].remove(&key);
            self.new_access(key.1, stream, stream)?;
            return Ok(key.1);
        }
        let id = self.blocks.len();
        self.blocks.push(Block {
            birth: stream,
            size,
            live: false,
            version: 0,
            counts: vec![0; self.streams],
            mif: Mif::new(self.streams),
            last_use: vec![ScalarClock::EMPTY; self.streams],
        });
        self.reinit(id, stream)?;
        Ok(id)
    }

    /// A block starts a new life on a stream.
    pub fn reinit(&mut self, id: usize, stream: usize) -> Result<(), BlockError> {
        self.stream(stream)?;
        let b = self.blocks.get_mut(id).ok_or(BlockError::NoBlock(id))?;
        if b.live {
            return Err(BlockError::Live(id));
        }
        (b.live, b.birth) = (true, stream);
        b.counts.fill(0);
        b.mif.reset();
        self.new_access(id, stream, stream)
    }

    /// `dst` uses a block that `src` has.
    pub fn new_access(&mut self, id: usize, src: usize, dst: usize) -> Result<(), BlockError> {
        self.stream(src)?;
        self.stream(dst)?;
        self.epoch = self.epoch.saturating_add(1);
        let now = self.epoch;
        let b = self.blocks.get_mut(id).ok_or(BlockError::NoBlock(id))?;
        b.counts[dst] += 1;
        b.mif.set_all(dst);
        b.last_use[dst] = stream_use(dst as u32, now);
        Ok(())
    }

    /// A stream is done with one use.
    pub fn free(&mut self, id: usize, stream: usize) -> Result<Recycle, BlockError> {
        self.stream(stream)?;
        let b = self.blocks.get_mut(id).ok_or(BlockError::NoBlock(id))?;
        let count = &mut b.counts[stream];
        *count = count
            .checked_sub(1)
            .ok_or(BlockError::NotUsed { stream, block: id })?;
        let done = *count == 0;
        if done {
            b.mif.clear(stream, stream);
        }
        Ok(self.settle(id, stream, done))
    }

    fn settle(&mut self, id: usize, stream: usize, just_done: bool) -> Recycle {
        let b = &mut self.blocks[id];
        if !b.live {
            return Recycle::None;
        }
        if b.mif.is_any_set(stream) {
            if !just_done {
                return Recycle::None;
            }
            self.local[stream].push(Waiting {
                block: id,
                version: b.version,
                sent: 0,
            });
            return Recycle::Local;
        }
        b.version += 1;
        b.counts.fill(0);
        b.mif.reset();
        if stream == b.birth {
            b.live = false;
            self.free[stream].insert((b.size, id));
            Recycle::Birth
        } else {
            self.borrow[stream].insert((b.size, id));
            Recycle::Borrow
        }
    }

    /// `dst` learns of one block what `src` knows; a block that nobody uses any more is recycled there.
    pub fn sync(&mut self, id: usize, src: usize, dst: usize) -> Result<Recycle, BlockError> {
        self.stream(src)?;
        self.stream(dst)?;
        let b = self.blocks.get_mut(id).ok_or(BlockError::NoBlock(id))?;
        b.mif.merge_cleared(src, dst);
        if b.mif.is_any_set(dst) || b.counts[dst] > 0 {
            return Ok(Recycle::None);
        }
        Ok(self.settle(id, dst, false))
    }

    /// An event from `src` to `dst`: everything that `src` has on its list and did not send to `dst` yet.
    pub fn event(&mut self, src: usize, dst: usize) -> Result<Vec<(usize, Recycle)>, BlockError> {
        self.stream(src)?;
        self.stream(dst)?;
        let full = super::mif::all_sent(self.streams, src);
        let mut sent = Vec::new();
        let blocks = &self.blocks;
        self.local[src].retain_mut(|w| {
            if blocks[w.block].version != w.version || w.sent == full {
                return false;
            }
            if dst != src && w.sent & 1 << dst == 0 {
                w.sent |= 1 << dst;
                sent.push((w.block, w.version));
            }
            true
        });
        let mut out = Vec::new();
        for (id, version) in sent {
            // The wait side drops news about an older life.
            if self.blocks[id].version == version {
                out.push((id, self.sync(id, src, dst)?));
            }
        }
        // What src borrowed from dst goes home.
        let home: Vec<(u64, usize)> = self.borrow[src]
            .iter()
            .copied()
            .filter(|(_, id)| self.blocks[*id].birth == dst && dst != src)
            .collect();
        for key in home {
            self.borrow[src].remove(&key);
            let b = &mut self.blocks[key.1];
            (b.version, b.live) = (b.version + 1, false);
            self.free[dst].insert(key);
            out.push((key.1, Recycle::Birth));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(streams: usize) -> (Pools, usize) {
        let mut p = Pools::new(streams);
        let id = p.malloc(0, 64).expect("memory");
        (p, id)
    }

    #[test]
    fn a_new_life_counts_one_use_where_it_is_born() {
        let (mut p, id) = block(2);
        assert_eq!(
            (p.blocks[id].counts.clone(), p.blocks[id].birth),
            (vec![1, 0], 0)
        );
        assert_eq!(p.reinit(id, 0), Err(BlockError::Live(id)));
    }

    #[test]
    fn freed_where_it_was_born() {
        let (mut p, id) = block(2);
        assert_eq!(p.free(id, 0), Ok(Recycle::Birth));
        assert_eq!(p.malloc(0, 32), Ok(id), "the memory is used again");
    }

    #[test]
    fn another_stream_still_uses_it() {
        let (mut p, id) = block(2);
        p.new_access(id, 0, 1).expect("a use");
        assert_eq!(p.free(id, 0), Ok(Recycle::Local));
        assert_eq!(p.blocks[id].counts, [0, 1]);
        let version = p.blocks[id].version;
        assert_eq!(
            p.free(id, 1),
            Ok(Recycle::Local),
            "stream 1 does not know yet that 0 is done"
        );
        assert_eq!(p.sync(id, 0, 1), Ok(Recycle::Borrow));
        assert_ne!(p.blocks[id].version, version);
        assert_eq!(p.malloc(1, 64), Ok(id), "stream 1 uses it for itself");
    }

    #[test]
    fn news_before_the_last_free() {
        let (mut p, id) = block(2);
        p.new_access(id, 0, 1).expect("a use");
        p.free(id, 0).expect("done");
        assert_eq!(p.sync(id, 0, 1), Ok(Recycle::None));
        assert_eq!(p.free(id, 1), Ok(Recycle::Borrow));
    }

    #[test]
    fn news_comes_home_before_the_last_free() {
        let (mut p, id) = block(2);
        p.new_access(id, 0, 1).expect("a use");
        assert_eq!(p.free(id, 1), Ok(Recycle::Local));
        assert_eq!(p.sync(id, 1, 0), Ok(Recycle::None));
        assert_eq!(p.free(id, 0), Ok(Recycle::Birth));
    }

    #[test]
    fn an_event_is_sent_once_and_stale_news_is_dropped() {
        let (mut p, id) = block(3);
        p.new_access(id, 0, 1).expect("a use");
        p.free(id, 0).expect("done");
        assert_eq!(p.event(0, 1), Ok(vec![(id, Recycle::None)]));
        assert_eq!(p.event(0, 1), Ok(vec![]));
        assert_eq!(p.free(id, 1), Ok(Recycle::Borrow));
        assert_eq!(p.event(0, 2), Ok(vec![]), "the block has a new life");
        assert_eq!(
            p.event(1, 0),
            Ok(vec![(id, Recycle::Birth)]),
            "the borrowed block goes home"
        );
    }

    #[test]
    fn bad_numbers_are_refused() {
        let (mut p, id) = block(2);
        assert_eq!(p.new_access(id, 0, 7), Err(BlockError::NoStream(7)));
        assert_eq!(p.free(9, 0), Err(BlockError::NoBlock(9)));
        assert_eq!(
            p.free(id, 1),
            Err(BlockError::NotUsed {
                stream: 1,
                block: id
            })
        );
    }
}
