//! Tensor maps that the program has made itself.

use crate::support::simulator;
use cuda_lazy::ext::{CUtensorMap, cuTensorMapEncodeTiled};
use gsan_host::{Arg, LaunchSpec, MemoryKind, Session, StreamFlags, TensorSpec, TensorType, Wait};

const KERNELS: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry box(.param .align 64 .b8 map[128])
{
    .reg .b32 %at;
    .reg .b64 %map;
    .shared .align 128 .b8 tile[128];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %at, tile;
    cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%map, {4}], [%at];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
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

#[test]
fn a_map_of_the_programs_is_counted_until_it_is_told_of() {
    for told in [false, true] {
        let _turn = simulator(|_| ());
        let mut s = Session::builder().build().unwrap();
        let data = s.alloc("data", 128, MemoryKind::Device, 0).unwrap();
        let module = s.load_module("k.ptx", KERNELS).unwrap();
        let streams = ["a", "b"].map(|n| s.stream(n, StreamFlags::NonBlocking, 0).unwrap());
        let mut map = CUtensorMap { opaque: [0; 16] };
        let (extent, size, step) = (32u64, 4u32, 1u32);
        // SAFETY: lists of one element, as the rank says, and none of strides.
        let made = unsafe {
            cuTensorMapEncodeTiled(
                &mut map,
                2,
                1,
                data.address as *mut std::ffi::c_void,
                &extent,
                std::ptr::null(),
                &size,
                &step,
                0,
                0,
                0,
                0,
            )
        };
        assert_eq!(made.0, 0);
        let bytes: Vec<u8> = map.opaque.iter().flat_map(|w| w.to_le_bytes()).collect();
        let spec = TensorSpec {
            ty: TensorType::U32,
            extents: vec![extent],
            strides: vec![],
            boxes: vec![size],
            steps: vec![],
            swizzle: 0,
            fill_nan: false,
            windows: None,
        };
        if told {
            s.note_tensor_map(&bytes, data.address, &spec).unwrap();
        }
        assert!(s.note_tensor_map(&bytes[1..], data.address, &spec).is_err());
        let launch = |kernel, stream, arg| {
            LaunchSpec::new(module, kernel, [1, 1, 1], [1, 1, 1], stream).arg(arg)
        };
        s.launch(&launch("box", streams[0], Arg::Scalar(bytes)))
            .unwrap();
        let inside = Arg::Pointer(data.address + 28);
        s.launch(&launch("put", streams[1], inside)).unwrap();
        s.synchronize(Wait::Device).unwrap();
        let report = s.finish().unwrap();
        let unknown = report.stats.misses.unwrap().unknown_map;
        assert_eq!(unknown, u64::from(!told));
        assert_eq!(report.races.len(), usize::from(told));
    }
}
