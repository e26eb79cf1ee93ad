//! Arrays, textures and surfaces on the simulated driver. The kernels check what they read (`data/textures.cu`, compiled by
//! nvcc 13 with `-arch=compute_90 -ptx`; `c.h` is in `gsan-sim/tests/data/features`): the first word counts the checks that
//! failed, the second has the number of the first one, the third counts all.

mod common;

use common::{Simulated, code, seeded};
use cust_raw::*;
use gsan_sim::{Config, MemoryModel};
use std::ffi::{CString, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;

#[track_caller]
fn ok(result: CUresult) {
    assert_eq!(code(result), 0, "{:?}", cuda_lazy::diagnosis());
}

const FLOAT: CUarray_format = CUarray_format::CU_AD_FORMAT_FLOAT;
const BYTE: CUarray_format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8;
const WORD: CUarray_format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32;
const POINT: CUfilter_mode = CUfilter_mode::CU_TR_FILTER_MODE_POINT;
const LINEAR: CUfilter_mode = CUfilter_mode::CU_TR_FILTER_MODE_LINEAR;

/// An array of those texels, filled in with a copy in three dimensions.
fn array(format: CUarray_format, [w, h, d]: [usize; 3], flags: u32, texels: &[u8]) -> CUarray {
    let what = CUDA_ARRAY3D_DESCRIPTOR {
        Width: w,
        Height: h,
        Depth: d,
        Format: format,
        NumChannels: 1,
        Flags: flags,
    };
    let mut array = null_mut();
    let row = texels.len() / h / d.max(1);
    // SAFETY: results are locals; the texels are as many as the copy takes.
    unsafe {
        ok(cuArray3DCreate_v2(&mut array, &what));
        let copy = CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: texels.as_ptr().cast(),
            srcDevice: 0,
            srcArray: null_mut(),
            reserved0: null_mut(),
            srcPitch: row,
            srcHeight: h,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            dstHost: null_mut(),
            dstDevice: 0,
            dstArray: array,
            reserved1: null_mut(),
            dstPitch: 0,
            dstHeight: 0,
            WidthInBytes: row,
            Height: h,
            Depth: d.max(1),
        };
        ok(cuMemcpy3D_v2(&copy));
    }
    array
}

fn of_array(array: CUarray) -> CUDA_RESOURCE_DESC {
    // SAFETY: all zeros are an array's description.
    let mut what: CUDA_RESOURCE_DESC = unsafe { zeroed() };
    what.resType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
    what.res.array.hArray = array;
    what
}

fn texture(
    what: &CUDA_RESOURCE_DESC,
    filter: CUfilter_mode,
    flags: u32,
    wraps: bool,
) -> (i32, u64) {
    // SAFETY: as above; the result is a local.
    unsafe {
        let mut how: CUDA_TEXTURE_DESC = zeroed();
        how.addressMode = if wraps {
            [CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP; 3]
        } else {
            [CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP; 3]
        };
        how.filterMode = filter;
        how.flags = flags;
        let mut object = 0;
        let answer = code(cuTexObjectCreate(&mut object, what, &how, std::ptr::null()));
        (answer, object)
    }
}

fn floats(shape: [u32; 3], value: impl Fn(u32, u32, u32) -> f32) -> Vec<u8> {
    let [w, h, d] = shape;
    let texel = |i: u32| value(i % w, i / w % h, i / w / h).to_le_bytes();
    (0..w * h * d).flat_map(texel).collect()
}

struct Kernels(CUmodule, CUdeviceptr);

impl Kernels {
    fn new() -> Kernels {
        let text = CString::new(include_str!("data/textures.ptx")).unwrap();
        let (mut module, mut out) = (null_mut(), 0);
        // SAFETY: results are locals, the text ends with a NUL.
        unsafe {
            ok(cuModuleLoadData(&mut module, text.as_ptr().cast()));
            ok(cuMemAlloc_v2(&mut out, 4096));
            ok(cuMemsetD8_v2(out, 0, 4096));
        }
        Kernels(module, out)
    }

    fn run(&self, name: &str, threads: u32, arguments: &mut [u64]) -> i32 {
        let name = CString::new(name).unwrap();
        let mut values: Vec<*mut c_void> = arguments
            .iter_mut()
            .map(|a| (a as *mut u64).cast())
            .collect();
        let mut function = null_mut();
        // SAFETY: the kernels take as many words.
        unsafe {
            ok(cuModuleGetFunction(&mut function, self.0, name.as_ptr()));
            let values = values.as_mut_ptr();
            ok(cuLaunchKernel(
                function,
                1,
                1,
                1,
                threads,
                1,
                1,
                0,
                null_mut(),
                values,
                null_mut(),
            ));
            code(cuCtxSynchronize())
        }
    }
}

#[test]
fn kernels_read_textures_and_write_surfaces() {
    for memory in [MemoryModel::Sequential, MemoryModel::Weak] {
        for seed in 0..4 {
            let mut config = seeded(seed);
            config.memory = memory;
            read_and_write(config);
        }
    }
}

fn read_and_write(config: Config) {
    let _sim = Simulated::with(config);
    let kernels = Kernels::new();
    let plane = floats([8, 4, 1], |x, y, _| (10 * y + x) as f32);
    let plane = of_array(array(FLOAT, [8, 4, 0], 0, &plane));
    let bytes = of_array(array(BYTE, [4, 1, 0], 0, &[0, 51, 102, 255]));
    let cell = |x: u32, y: u32, z: u32| (100 * z + 10 * y + x) as f32;
    let layers = array(
        FLOAT,
        [2, 2, 3],
        CUDA_ARRAY3D_LAYERED,
        &floats([2, 2, 3], cell),
    );
    let cube = array(FLOAT, [2, 2, 3], 0, &floats([2, 2, 3], cell));
    let words: Vec<u8> = (100..132u32).flat_map(u32::to_le_bytes).collect();
    let surface = array(WORD, [8, 4, 0], CUDA_ARRAY3D_SURFACE_LDST, &words);
    // SAFETY: results are locals.
    unsafe {
        let mut memory = 0;
        ok(cuMemAlloc_v2(&mut memory, 256));
        let counting: Vec<f32> = (0..64).map(|i| i as f32).collect();
        ok(cuMemcpyHtoD_v2(memory, counting.as_ptr().cast(), 256));
        let mut linear: CUDA_RESOURCE_DESC = zeroed();
        linear.resType = CUresourcetype::CU_RESOURCE_TYPE_LINEAR;
        linear.res.linear = CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
            devPtr: memory,
            format: FLOAT,
            numChannels: 4,
            sizeInBytes: 256,
        };
        let mut object = 0;
        ok(cuSurfObjectCreate(&mut object, &of_array(surface)));
        let textures = [
            texture(&linear, POINT, 0, false),
            texture(&plane, POINT, 0, false),
            texture(&plane, LINEAR, 0, false),
            texture(&bytes, POINT, CU_TRSF_NORMALIZED_COORDINATES, true),
            texture(&of_array(layers), POINT, 0, false),
            texture(&of_array(cube), POINT, 0, false),
        ];
        assert!(
            textures.iter().all(|(answer, _)| *answer == 0),
            "{textures:?}"
        );
        let objects = textures.map(|(_, object)| object);
        let mut arguments = vec![kernels.1];
        arguments.extend(objects);
        arguments.push(object);
        assert_eq!(
            kernels.run("k", 32, &mut arguments),
            0,
            "{:?}",
            cuda_lazy::diagnosis()
        );
        let mut said = [0u32; 3];
        ok(cuMemcpyDtoH_v2(said.as_mut_ptr().cast(), kernels.1, 12));
        assert_eq!(said, [0, 0, 15 * 32]);
        // What the kernel stored is in the array.
        let mut back = [0u32; 2];
        ok(cuMemcpyAtoH_v2(back.as_mut_ptr().cast(), surface, 4, 8));
        assert_eq!(back, [202, 204]);
        let mut known = linear;
        let mut of = CUDA_ARRAY3D_DESCRIPTOR {
            Width: 0,
            Height: 0,
            Depth: 0,
            Format: FLOAT,
            NumChannels: 0,
            Flags: 0,
        };
        ok(cuArray3DGetDescriptor_v2(&mut of, layers));
        assert_eq!((of.Width, of.Depth, of.Flags), (2, 3, CUDA_ARRAY3D_LAYERED));
        ok(cuTexObjectGetResourceDesc(&mut known, objects[1]));
        assert_eq!(known.res.array.hArray, plane.res.array.hArray);
        for object in objects {
            ok(cuTexObjectDestroy(object));
        }
        ok(cuArrayDestroy(cube));
    }
}

#[test]
fn what_is_outside_of_a_surface_is_a_fault() {
    let _sim = Simulated::new();
    let surface = array(WORD, [8, 4, 0], CUDA_ARRAY3D_SURFACE_LDST, &[0; 128]);
    let mut object = 0;
    // SAFETY: the result is a local.
    ok(unsafe { cuSurfObjectCreate(&mut object, &of_array(surface)) });
    faults(object, 700, "outside of the surface");
}

/// A GPU goes on as if nothing had been stored.
#[test]
fn what_is_no_object_is_a_fault() {
    let _sim = Simulated::new();
    let simulated = cuda_lazy::backend() == cuda_lazy::Backend::Simulated;
    let expected = if simulated { 715 } else { 0 };
    faults(5, expected, "no texture or surface object");
}

/// A store to the surface of that number ends so; the simulator says why.
#[track_caller]
fn faults(object: u64, expected: i32, part: &str) {
    let answer = Kernels::new().run("outside", 1, &mut [object]);
    let why = cuda_lazy::diagnosis();
    assert_eq!(answer, expected, "{why:?}");
    if let Some(why) = why {
        assert!(format!("{why:?}").contains(part), "{why:?}");
    }
}

#[test]
fn wrong_descriptions_are_refused() {
    let _sim = Simulated::new();
    let words = array(WORD, [8, 4, 0], 0, &[0; 128]);
    // Integers are mixed, too.
    assert_eq!(texture(&of_array(words), LINEAR, 0, false).0, 0);
    // SAFETY: results are locals; wrong handles are looked up, never followed.
    unsafe {
        let mut what: CUDA_RESOURCE_DESC = zeroed();
        what.resType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        assert_eq!(texture(&what, POINT, 0, false).0, 1);
        let mut object = 0;
        ok(cuArrayDestroy(words));
        assert_eq!(code(cuSurfObjectCreate(&mut object, &of_array(words))), 400);
        assert_eq!(code(cuArrayDestroy(words)), 400);
        assert_eq!(code(cuTexObjectDestroy(7)), 1);
    }
}
