//! Memory that a caching allocator in C hands out again.

use crate::support::{BYTES, Host, simulator};
use gsan_host::forget::{FORGOTTEN, NOT_CHECKED, gsan_forget};
use gsan_host::{Buffer, MemoryKind, Session, StreamFlags, StreamId};
use libloading::Library;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::process::Command;

type Hook = unsafe extern "C" fn(*mut c_void, usize, *mut c_void) -> c_int;

/// `caching.c` as a library.
struct Cache(Library);

impl Cache {
    /// Blocks of `BYTES`.
    fn new(slab: Buffer, hook: Option<Hook>) -> Cache {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let built = folder.join(format!("libcaching-{}.so", std::process::id()));
        let status = Command::new("cc")
            .args(["-Wall", "-Werror", "-shared", "-fPIC", "-I"])
            .arg(here.join("include"))
            .arg(here.join("tests/simulator/caching.c"))
            .arg("-o")
            .arg(&built)
            .status();
        assert!(status.is_ok_and(|s| s.success()));
        // SAFETY: our own library; it has no initialisers.
        let cache = Cache(unsafe { Library::new(&built) }.unwrap());
        std::fs::remove_file(&built).unwrap();
        type Init = unsafe extern "C" fn(u64, u64, u64, Option<Hook>);
        // SAFETY: so it is declared in caching.c.
        unsafe {
            cache.0.get::<Init>(b"cache_init").unwrap()(slab.address, slab.bytes, BYTES, hook)
        };
        cache
    }

    fn alloc(&self, h: &Host, stream: StreamId) -> Buffer {
        type Alloc = unsafe extern "C" fn(*mut c_void) -> u64;
        let stream = h.session.raw_stream(stream).unwrap();
        // SAFETY: as above; the stream lives.
        let address = unsafe { self.0.get::<Alloc>(b"cache_alloc").unwrap()(stream) };
        assert_ne!(address, 0);
        Buffer {
            address,
            bytes: BYTES,
            kind: MemoryKind::Device,
            device: 0,
        }
    }

    fn free(&self, block: Buffer) {
        type Free = unsafe extern "C" fn(u64);
        // SAFETY: as above.
        unsafe { self.0.get::<Free>(b"cache_free").unwrap()(block.address) };
    }
}

/// A host with a slab of three blocks, and two streams that nothing orders.
fn setting(hook: Option<Hook>) -> (Host, Cache, [StreamId; 2]) {
    let mut h = Host::new();
    let slab = h.session.alloc("slab", 3 * BYTES, MemoryKind::Device, 0);
    let streams = ["s", "t"].map(|name| {
        let stream = h.session.stream(name, StreamFlags::NonBlocking, 0);
        stream.unwrap()
    });
    let cache = Cache::new(slab.unwrap(), hook);
    (h, cache, streams)
}

/// The allocator knows that the work in a stream has ended, from where gsan does not see it.
fn ended(h: &Host, stream: StreamId) {
    let raw = h.session.raw_stream(stream).unwrap();
    // SAFETY: the stream lives, and the session's context is current in this thread.
    let waited = unsafe { cust::sys::cuStreamSynchronize(raw.cast()) };
    assert_eq!(waited as u32, 0);
}

#[test]
fn a_block_that_is_handed_out_again_starts_clean_with_the_hook() {
    for hook in [Some(gsan_forget as Hook), None] {
        let _turn = simulator(|c| c.seed = 3);
        let (mut h, cache, [s, t]) = setting(hook);
        let first = cache.alloc(&h, s);
        h.put(first, 1, s);
        ended(&h, s);
        cache.free(first);
        let second = cache.alloc(&h, t);
        assert_eq!(first, second);
        h.put(second, 2, t);
        assert_eq!(h.races().is_empty(), hook.is_some());
    }
}

/// What comes after the forgetting races as ever, and so does what is beside the block.
#[test]
fn nothing_else_is_forgotten() {
    for (seed, same_block) in [(0, true), (1, false), (2, true), (3, false)] {
        let _turn = simulator(|c| c.seed = seed);
        let (mut h, cache, [s, t]) = setting(Some(gsan_forget));
        let (block, beside) = (cache.alloc(&h, s), cache.alloc(&h, s));
        h.put(beside, 1, s);
        h.put(block, 1, s);
        ended(&h, s);
        cache.free(block);
        let again = cache.alloc(&h, t);
        assert_eq!(again, block);
        h.put(again, 2, t);
        ended(&h, t);
        if same_block {
            h.put(again, 3, s);
        } else {
            h.put(beside, 2, t);
        }
        let races = h.races();
        assert_eq!(races.len(), 1, "{races:?}");
        assert_eq!(races[0].offset.unwrap() < BYTES, same_block, "{races:?}");
    }
}

#[test]
fn only_what_is_checked_can_be_forgotten() {
    let _turn = simulator(|_| ());
    let mut h = Host::new();
    let data = h.buffer("data");
    let pinned = h
        .session
        .alloc("pinned", 64, MemoryKind::Pinned, 0)
        .unwrap();
    let at = |address: u64, bytes: u64| {
        // SAFETY: the null stream is the default one.
        unsafe { gsan_forget(address as *mut c_void, bytes as usize, std::ptr::null_mut()) }
    };
    assert_eq!(at(data.address, data.bytes), FORGOTTEN);
    assert_eq!(at(data.address + 1, 1), FORGOTTEN);
    assert_eq!(at(data.address, 0), FORGOTTEN);
    assert_eq!(at(data.address, u64::MAX), NOT_CHECKED);
    assert_eq!(at(data.address, 1 << 40), NOT_CHECKED);
    assert_eq!(at(pinned.address, 4), NOT_CHECKED);
    assert_eq!(at(0, 4), NOT_CHECKED);
    let address = data.address;
    drop(h);
    assert_eq!(at(address, 4), NOT_CHECKED, "the session is gone");
    // A session that checks nothing has nothing to forget.
    let mut plain = Session::builder().instrument(false).build().unwrap();
    let buffer = plain.alloc("b", 64, MemoryKind::Device, 0).unwrap();
    assert_eq!(at(buffer.address, 4), NOT_CHECKED);
}
