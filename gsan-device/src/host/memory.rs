//! Zeroed words at their own addresses.

use bytemuck::{Pod, bytes_of, bytes_of_mut};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::boxed::Box;
use std::vec;

/// Zeroed words at their own addresses.
pub struct Memory {
    words: Box<[AtomicU64]>,
}

impl Memory {
    /// `bytes` of zeros.
    pub fn new(bytes: u64) -> Memory {
        let words = vec![0u64; bytes as usize / 8 + 1];
        Memory {
            words: words.into_iter().map(AtomicU64::new).collect(),
        }
    }

    /// Zeroes every word; no other thread is at it.
    pub(super) fn clear(&self) {
        for word in &self.words {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// The first byte's address.
    pub fn base(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    fn at32(&self, addr: u64) -> &AtomicU32 {
        self.check(addr, 4);
        // SAFETY: `check` has shown that the word lies in `words`, aligned; every field of the layout is always
        // accessed with its own width, so no location is accessed with two.
        unsafe { AtomicU32::from_ptr(addr as *mut u32) }
    }

    fn at64(&self, addr: u64) -> &AtomicU64 {
        self.check(addr, 8);
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(addr as *mut u64) }
    }

    fn check(&self, addr: u64, size: u64) {
        let end = self.base() + 8 * self.words.len() as u64;
        assert!(
            addr >= self.base() && addr + size <= end && addr.is_multiple_of(size),
            "bad address {addr:#x}"
        );
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

    pub(super) fn load64(&self, addr: u64, acquire: bool) -> u64 {
        self.at64(addr).load(if acquire {
            Ordering::Acquire
        } else {
            Ordering::Relaxed
        })
    }

    pub(super) fn store64(&self, addr: u64, value: u64, release: bool) {
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
        match self
            .at64(addr)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, f)
        {
            Ok(old) | Err(old) => old,
        }
    }

    /// Copies a struct in, byte by byte; no other thread is at it.
    pub fn write<T: Pod>(&self, addr: u64, value: &T) {
        let bytes = bytes_of(value);
        self.check(addr, 1);
        self.check(addr + bytes.len() as u64 - 1, 1);
        // SAFETY: in bounds; the caller says that nobody else is at it.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), addr as *mut u8, bytes.len()) };
    }

    /// Copies a struct out; no other thread is at it.
    pub fn read<T: Pod>(&self, addr: u64) -> T {
        let mut value = T::zeroed();
        let bytes = bytes_of_mut(&mut value);
        self.check(addr, 1);
        self.check(addr + bytes.len() as u64 - 1, 1);
        // SAFETY: as in `write`.
        unsafe {
            core::ptr::copy_nonoverlapping(addr as *const u8, bytes.as_mut_ptr(), bytes.len())
        };
        value
    }
}

pub(super) fn fence() {
    core::sync::atomic::fence(Ordering::AcqRel);
}

pub(super) fn pause() {
    std::thread::yield_now();
}
