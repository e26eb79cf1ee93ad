//! Words that loom schedules.

use bytemuck::{Pod, bytes_of, pod_read_unaligned};
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence as loom_fence};
use std::collections::HashSet;
use std::sync::RwLock;
use std::vec::Vec;

/// Zeroed words, each a loom atomic made by the thread that lays the device out.
///
/// 64-bit fields are kept beside them: a field is always accessed with its own width, so the two never disagree.
pub struct Memory {
    words: Vec<AtomicU32>,
    wide: Vec<AtomicU64>,
    /// Fields that were stored with 64 bits, so that [`Memory::read`] knows them from pairs of words.
    stored: RwLock<HashSet<u64>>,
}

const BASE: u64 = 0x1000;

impl Memory {
    /// `bytes` of zeros.
    pub fn new(bytes: u64) -> Memory {
        Memory {
            words: (0..bytes / 4 + 2).map(|_| AtomicU32::new(0)).collect(),
            wide: (0..bytes / 8 + 2).map(|_| AtomicU64::new(0)).collect(),
            stored: RwLock::default(),
        }
    }

    /// The first byte's address.
    pub fn base(&self) -> u64 {
        BASE
    }

    fn at32(&self, addr: u64) -> &AtomicU32 {
        assert!(addr % 4 == 0 && addr >= BASE, "bad address {addr:#x}");
        &self.words[((addr - BASE) / 4) as usize]
    }

    pub(super) fn load32(&self, addr: u64, acquire: bool) -> u32 {
        self.at32(addr).load(if acquire {
            Ordering::Acquire
        } else {
            Ordering::Relaxed
        })
    }

    pub(super) fn store32(&self, addr: u64, value: u32, release: bool) {
        self.at32(addr).store(
            value,
            if release {
                Ordering::Release
            } else {
                Ordering::Relaxed
            },
        );
    }

    fn at64(&self, addr: u64) -> &AtomicU64 {
        assert!(addr % 8 == 0 && addr >= BASE, "bad address {addr:#x}");
        &self.wide[((addr - BASE) / 8) as usize]
    }

    pub(super) fn load64(&self, addr: u64, acquire: bool) -> u64 {
        self.at64(addr).load(if acquire {
            Ordering::Acquire
        } else {
            Ordering::Relaxed
        })
    }

    pub(super) fn store64(&self, addr: u64, value: u64, release: bool) {
        self.stored.write().unwrap().insert(addr);
        self.at64(addr).store(
            value,
            if release {
                Ordering::Release
            } else {
                Ordering::Relaxed
            },
        );
    }

    pub(super) fn update32(&self, addr: u64, f: impl Fn(u32) -> Option<u32>) -> u32 {
        match self
            .at32(addr)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, f)
        {
            Ok(old) | Err(old) => old,
        }
    }

    pub(super) fn update64(&self, addr: u64, f: impl Fn(u64) -> Option<u64>) -> u64 {
        self.stored.write().unwrap().insert(addr);
        match self
            .at64(addr)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, f)
        {
            Ok(old) | Err(old) => old,
        }
    }

    /// Copies a struct in: both as words and, where aligned, as 64-bit values, since its fields' widths are not known here.
    pub fn write<T: Pod>(&self, addr: u64, value: &T) {
        let bytes = bytes_of(value);
        for (i, chunk) in bytes.chunks(4).enumerate() {
            self.at32(addr + 4 * i as u64)
                .store(pod_read_unaligned(chunk), Ordering::SeqCst);
        }
        for (i, chunk) in bytes.chunks_exact(8).enumerate() {
            let at = addr + 8 * i as u64;
            if at % 8 == 0 {
                self.at64(at)
                    .store(pod_read_unaligned(chunk), Ordering::SeqCst);
                self.stored.write().unwrap().remove(&at);
            }
        }
    }

    /// Copies a struct out, from its words and the 64-bit fields stored since.
    pub fn read<T: Pod>(&self, addr: u64) -> T {
        let mut bytes = Vec::new();
        for i in 0..size_of::<T>() / 4 {
            let word = self.at32(addr + 4 * i as u64).load(Ordering::SeqCst);
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for (i, chunk) in bytes.chunks_exact_mut(8).enumerate() {
            let at = addr + 8 * i as u64;
            if self.stored.read().unwrap().contains(&at) {
                chunk.copy_from_slice(&self.load64(at, true).to_le_bytes());
            }
        }
        pod_read_unaligned(&bytes)
    }
}

pub(super) fn fence() {
    loom_fence(Ordering::AcqRel);
}

pub(super) fn pause() {
    loom::thread::yield_now();
}
