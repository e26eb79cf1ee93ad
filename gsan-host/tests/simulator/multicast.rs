//! Multicast memory: what a session knows to be bound, and what it does not.

use crate::support::{Turn, simulator};
use gsan_host::report::Report;
use gsan_host::{Arg, Error, LaunchSpec, MemoryKind, Session, StreamFlags, StreamId};

const KERNELS: &str = "
.version 8.1
.target sm_90
.address_size 64
.visible .entry add(.param .u64 at)
{
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [at];
    multimem.red.global.add.u32 [%d1], 1;
    ret;
}
.visible .entry put(.param .u64 at)
{
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [at];
    st.global.u32 [%d1], 7;
    ret;
}
";

fn session(devices: &[u32], instrument: bool) -> (Turn, Session) {
    let turn = simulator(|c| c.devices = 2);
    let builder = Session::builder().devices(devices).instrument(instrument);
    (turn, builder.build().unwrap())
}

fn launch(session: &mut Session, kernel: &str, at: u64, stream: StreamId) {
    let module = session.load_linked("k.ptx", &[("k.ptx", KERNELS)]).unwrap();
    let spec = LaunchSpec::new(module, kernel, [1, 1, 1], [1, 1, 1], stream);
    session.launch(&spec.arg(Arg::Pointer(at))).unwrap();
}

fn unknown(report: &Report) -> u64 {
    report.stats.misses.unwrap().unknown_multicast
}

#[test]
fn each_devices_memory_is_checked_at_its_own_address() {
    for (part, races) in [(0, 1), (1, 1), (2, 0)] {
        let (_turn, mut s) = session(&[0, 1], true);
        let all = s.alloc_multicast("all", 64, &[0, 1]).unwrap();
        let other = s.alloc("other", 64, MemoryKind::Device, 1).unwrap();
        let streams = [0, 1].map(|d| s.stream("s", StreamFlags::NonBlocking, d).unwrap());
        launch(&mut s, "add", all.address + 4, streams[0]);
        let at = all.parts.get(part).unwrap_or(&other).address + 4;
        launch(&mut s, "put", at, streams[1]);
        let report = s.finish().unwrap();
        assert_eq!(report.races.len(), races, "{part}");
        if let Some(race) = report.races.first() {
            assert_eq!(race.buffer.as_deref(), Some(format!("all.{part}").as_str()));
        }
        assert_eq!(unknown(&report), 0);
    }
}

#[test]
fn without_hooks_the_values_are_the_same() {
    for instrument in [false, true] {
        let (_turn, mut s) = session(&[0, 1], instrument);
        let all = s.alloc_multicast("all", 64, &[1, 0]).unwrap();
        assert_eq!(all.parts[0].device, 1);
        for part in &all.parts {
            s.initialise(part, &[part.device as u8, 0, 0, 0]).unwrap();
        }
        let stream = s.stream("s", StreamFlags::Blocking, 0).unwrap();
        launch(&mut s, "add", all.address, stream);
        s.synchronize(gsan_host::Wait::Device).unwrap();
        for part in &all.parts {
            let word = s.read(part.address, 4).unwrap();
            assert_eq!(word, [part.device as u8 + 1, 0, 0, 0]);
        }
        s.free(all.address, None).unwrap();
        assert_eq!(s.finish().unwrap().races, []);
    }
}

#[test]
fn what_is_freed_is_forgotten() {
    let (_turn, mut s) = session(&[0], true);
    let stream = s.stream("s", StreamFlags::Blocking, 0).unwrap();
    for _ in 0..3 {
        let all = s.alloc_multicast("all", 3 << 20, &[0]).unwrap();
        let part = all.parts[0].address;
        assert!(
            matches!(s.free(part, None), Err(Error::Configuration(m)) if m.contains("freed instead"))
        );
        launch(&mut s, "add", all.address, stream);
        s.free(all.address, Some(stream)).unwrap();
        assert!(matches!(s.free(part, None), Err(Error::NotABuffer { .. })));
        assert!(matches!(
            s.free(all.address, None),
            Err(Error::NotABuffer { .. })
        ));
    }
    let report = s.finish().unwrap();
    assert_eq!((report.races.len(), unknown(&report)), (0, 0));
}

#[test]
fn wrong_teams_are_refused() {
    let (_turn, mut s) = session(&[0, 1], true);
    for wrong in [&[][..], &[0, 0], &[2]] {
        assert!(s.alloc_multicast("all", 64, wrong).is_err(), "{wrong:?}");
    }
    assert!(matches!(
        s.alloc_multicast("all", 0, &[0]),
        Err(Error::EmptyBuffer)
    ));
    // It is no memory.
    let all = s.alloc_multicast("all", 64, &[0]).unwrap();
    let stream = s.stream("s", StreamFlags::Blocking, 0).unwrap();
    let refused = s.memset(all.address, 0, 4, stream);
    assert!(matches!(refused, Err(Error::OutOfBounds { .. })));
    assert!(
        s.note_multicast(1 << 40, 8, &[all.parts[0].address + 60])
            .is_err()
    );
}

#[test]
fn a_programs_own_mapping_is_counted_until_it_is_told_of() {
    for told in [false, true] {
        let (_turn, mut s) = session(&[0], true);
        let stream = s.stream("s", StreamFlags::NonBlocking, 0).unwrap();
        let other = s.stream("t", StreamFlags::NonBlocking, 0).unwrap();
        // More than a granule: it has a mapping of its own.
        let data = s.alloc("data", 2 << 20, MemoryKind::Device, 0).unwrap();
        let at = bind_by_hand(data.address);
        if told {
            s.note_multicast(at, 2 << 20, &[data.address]).unwrap();
        }
        launch(&mut s, "add", at + 8, stream);
        launch(&mut s, "put", data.address + 8, other);
        s.synchronize(gsan_host::Wait::Device).unwrap();
        if told {
            s.free(at, None).unwrap();
        }
        let report = s.finish().unwrap();
        assert_eq!(unknown(&report), u64::from(!told));
        assert_eq!(report.races.len(), usize::from(told));
    }
}

/// A multicast object of device 0, as a program makes one, with 2 MiB of memory.
fn bind_by_hand(memory: u64) -> u64 {
    use cuda_lazy::ext::*;
    use cust::sys::*;
    let bytes = 2 << 20;
    let properties = CUmulticastObjectProp {
        numDevices: 1,
        size: bytes,
        ..Default::default()
    };
    let access = CUmemAccessDesc {
        location: CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: 0,
        },
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    let (mut object, mut at) = (0, 0);
    // SAFETY: pointers to locals, and handles and addresses that the simulated driver looks up.
    unsafe {
        assert_eq!(cuMulticastCreate(&mut object, &properties).0, 0);
        assert_eq!(cuMulticastAddDevice(object, 0).0, 0);
        assert_eq!(cuMulticastBindAddr(object, 0, memory, bytes, 0).0, 0);
        assert_eq!(cuMemAddressReserve(&mut at, bytes, 0, 0, 0) as u32, 0);
        assert_eq!(cuMemMap(at, bytes, 0, object, 0) as u32, 0);
        assert_eq!(cuMemSetAccess(at, bytes, &access, 1) as u32, 0);
    }
    at
}
