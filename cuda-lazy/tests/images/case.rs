//! A case: an image, an object of it, an instruction, and what 64 threads give it.

use cuda_lazy::diagnosis;
use cust_raw::*;
use std::ffi::{CString, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

use super::cases::bits;

pub const THREADS: u32 = 64;

/// Elements of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

impl Format {
    fn bytes(self) -> usize {
        match self {
            Format::U8 | Format::S8 => 1,
            Format::U16 | Format::S16 | Format::F16 => 2,
            _ => 4,
        }
    }

    fn driver(self) -> CUarray_format {
        use CUarray_format::*;
        match self {
            Format::U8 => CU_AD_FORMAT_UNSIGNED_INT8,
            Format::U16 => CU_AD_FORMAT_UNSIGNED_INT16,
            Format::U32 => CU_AD_FORMAT_UNSIGNED_INT32,
            Format::S8 => CU_AD_FORMAT_SIGNED_INT8,
            Format::S16 => CU_AD_FORMAT_SIGNED_INT16,
            Format::S32 => CU_AD_FORMAT_SIGNED_INT32,
            Format::F16 => CU_AD_FORMAT_HALF,
            Format::F32 => CU_AD_FORMAT_FLOAT,
        }
    }

    /// Whole numbers below 1024 as floats, any bits as integers.
    fn element(self, seed: u32) -> [u8; 4] {
        let n = bits(seed) % 1024;
        match self {
            Format::F32 => (n as f32).to_bits(),
            // Between one half and one.
            Format::F16 => 0x3800 + n,
            _ => bits(seed),
        }
        .to_le_bytes()
    }
}

/// An array.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    format: Format,
    channels: u32,
    extents: [usize; 3],
    flags: u32,
    levels: u32,
    /// Floats of all sizes.
    fine: bool,
    /// Bytes that have their texel's number.
    counting: bool,
}

impl Shape {
    pub fn new(format: Format, channels: u32, extents: [usize; 3], flags: u32) -> Shape {
        let levels = 0;
        Shape {
            format,
            channels,
            extents,
            flags,
            levels,
            fine: false,
            counting: false,
        }
    }

    pub fn counting(mut self) -> Shape {
        self.counting = true;
        self
    }

    fn is_solid(&self) -> bool {
        self.extents[2] > 0 && self.flags & 5 == 0
    }

    /// Texels are below that, or at most one.
    fn most(&self) -> f32 {
        match self.format {
            Format::F32 => 1024.0,
            _ => 1.0,
        }
    }

    pub fn fine(mut self) -> Shape {
        self.fine = true;
        self
    }

    /// A mipmap.
    pub fn levels(mut self, levels: u32) -> Shape {
        self.levels = levels;
        self
    }

    pub fn without(mut self, flag: u32) -> Shape {
        self.flags &= !flag;
        self
    }

    /// Bytes of a row, rows and slices of a level.
    fn size(&self, level: u32) -> [usize; 3] {
        let [w, h, d] = self.extents;
        let less = |n: usize| (n >> level).max(1);
        // Layers and faces stay.
        let d = if self.flags & 5 != 0 { d } else { less(d) };
        [
            less(w) * self.format.bytes() * self.channels as usize,
            less(h),
            d.max(1),
        ]
    }

    fn content(&self, level: u32) -> Vec<u8> {
        let [row, h, d] = self.size(level);
        let elements = row / self.format.bytes() * h * d;
        let one = |i: usize| match self.fine {
            _ if self.counting => (i as u32 / self.channels).to_le_bytes(),
            // Between 2^-3 and 2^5, with all bits of the mantissa.
            true => ((bits(i as u32) & 0x83ff_ffff) + 0x3e00_0000).to_le_bytes(),
            false => self.format.element(i as u32 + 100_000 * level),
        };
        (0..elements)
            .flat_map(|i| one(i)[..self.format.bytes()].to_vec())
            .collect()
    }
}

/// What a coordinate outside becomes.
#[derive(Debug, Clone, Copy)]
pub enum Edge {
    Clamp,
    Wrap,
    Mirror,
    Border,
}

/// The whole of it.
pub struct Case {
    pub name: String,
    shape: Shape,
    body: String,
    input: fn(u32) -> [u32; 8],
    outputs: usize,
    linear: bool,
    mixed: bool,
    surface: bool,
    edge: Edge,
    flags: u32,
    bias: f32,
    clamp: [f32; 2],
    steps: Option<f32>,
}

impl Case {
    pub fn new(
        name: impl Into<String>,
        shape: Shape,
        body: impl Into<String>,
        input: fn(u32) -> [u32; 8],
    ) -> Case {
        Case {
            name: name.into(),
            shape,
            body: body.into(),
            input,
            outputs: 1,
            linear: false,
            mixed: false,
            surface: false,
            edge: Edge::Clamp,
            flags: CU_TRSF_NORMALIZED_COORDINATES,
            bias: 0.0,
            clamp: [0.0, 100.0],
            steps: None,
        }
    }

    /// Filters texels.
    pub fn linear(mut self) -> Case {
        self.linear = true;
        self
    }

    /// Filters levels.
    pub fn mixed(mut self) -> Case {
        self.mixed = true;
        self
    }

    /// Of a surface.
    pub fn surface(mut self) -> Case {
        self.surface = true;
        self.outputs = 2;
        self
    }

    pub fn outputs(mut self, outputs: usize) -> Case {
        self.outputs = outputs;
        self
    }

    pub fn edge(mut self, edge: Edge) -> Case {
        self.edge = edge;
        self
    }

    pub fn flags(mut self, flags: u32) -> Case {
        self.flags |= flags;
        self
    }

    /// Without normalised coordinates.
    pub fn absolute(mut self) -> Case {
        self.flags &= !CU_TRSF_NORMALIZED_COORDINATES;
        self
    }

    /// So many steps of the weights from the hardware's.
    pub fn near(mut self, steps: f32) -> Case {
        self.steps = Some(steps);
        self
    }

    pub fn bias(mut self, bias: f32) -> Case {
        self.bias = bias;
        self
    }

    pub fn clamped(mut self, low: f32, high: f32) -> Case {
        self.clamp = [low, high];
        self
    }

    /// Whether two results agree.
    pub fn compare(&self, expected: &str, found: &str) -> Result<(), String> {
        let (a, b): (Vec<_>, Vec<_>) = (expected.split(' ').collect(), found.split(' ').collect());
        let differ = |(a, b): &(&&str, &&str)| a != b && !self.is_near(a, b);
        let wrong: Vec<usize> = a
            .iter()
            .zip(&b)
            .enumerate()
            .filter(|(_, pair)| differ(pair))
            .map(|(n, _)| n)
            .collect();
        match wrong.first() {
            None if a.len() == b.len() => Ok(()),
            None => Err(format!("{} words, not {}", b.len(), a.len())),
            Some(&n) => Err(format!(
                "{} of {} words differ, first number {n}: {}, not {}",
                wrong.len(),
                a.len(),
                b[n],
                a[n]
            )),
        }
    }

    /// Of two levels or along three dimensions the weights are not quite the hardware's: a few steps of 256 are let pass.
    fn is_near(&self, a: &str, b: &str) -> bool {
        let float = |word: &str| u32::from_str_radix(word, 16).map(f32::from_bits);
        let plain = !self.mixed && self.shape.levels == 0 && !self.shape.is_solid();
        let steps = self.steps.unwrap_or(if plain { 0.0 } else { 2.0 });
        match (float(a), float(b)) {
            (Ok(a), Ok(b)) => (a - b).abs() <= steps * self.shape.most() / 256.0,
            _ => false,
        }
    }

    pub fn ptx(&self) -> String {
        let mut body = self.body.clone();
        for n in 0..8 {
            body = body.replace(&format!("R{n}"), &format!("%r{n}"));
            body = body.replace(&format!("F{n}"), &format!("%f{n}"));
            body = body.replace(&format!("O{n}"), &format!("%o{n}"));
        }
        let body = body.replace("[T", "[%d0").replace(", T;", ", %d0;");
        let body = body.replace("[S", "[%d0").replace(", S;", ", %d0;");
        let load: String = (0..8)
            .map(|n| {
                format!(
                    "ld.global.b32 %r{n}, [%d1+{}]; mov.b32 %f{n}, %r{n};\n",
                    4 * n
                )
            })
            .collect();
        let store: String = (0..4)
            .map(|n| format!("st.global.b32 [%d2+{}], %o{n};\n", 4 * n))
            .collect();
        format!(
            ".version 8.6\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 object, .param .u64 in, .param .u64 out) {{
  .reg .b64 %d<3>; .reg .b32 %r<9>, %o<4>; .reg .f32 %f<8>;
  ld.param.u64 %d0, [object]; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r8, %tid.x;
  mad.wide.u32 %d1, %r8, 32, %d1; mad.wide.u32 %d2, %r8, 16, %d2;
  mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;
  {load}  {body}\n{store}  ret;\n}}\n"
        )
    }

    /// What the threads found, and for surfaces what is in the array then; or what the driver said.
    pub fn run(&self) -> String {
        // SAFETY: results are locals, and everything lives until it is destroyed.
        match unsafe { self.try_run() } {
            Ok(words) => words.join(" "),
            Err(said) => said,
        }
    }

    /// # Safety
    ///
    /// A context is current.
    unsafe fn try_run(&self) -> Result<Vec<String>, String> {
        let what = CUDA_ARRAY3D_DESCRIPTOR {
            Width: self.shape.extents[0],
            Height: self.shape.extents[1],
            Depth: self.shape.extents[2],
            Format: self.shape.format.driver(),
            NumChannels: self.shape.channels,
            Flags: self.shape.flags,
        };
        // SAFETY: results are locals; copies have the arrays' sizes; the kernel takes three words.
        unsafe {
            let (mut array, mut mipmap, mut levels) = (null_mut(), null_mut(), Vec::new());
            if self.shape.levels == 0 {
                ok("array", cuArray3DCreate_v2(&mut array, &what))?;
                levels.push(array);
            } else {
                ok(
                    "mipmap",
                    cuMipmappedArrayCreate(&mut mipmap, &what, self.shape.levels),
                )?;
                for level in 0..self.shape.levels {
                    ok("level", cuMipmappedArrayGetLevel(&mut array, mipmap, level))?;
                    levels.push(array);
                }
            }
            for (level, array) in (0..).zip(&levels) {
                let mut content = self.shape.content(level);
                ok(
                    "copy",
                    copy(*array, &mut content, self.shape.size(level), true),
                )?;
            }
            let mut resource: CUDA_RESOURCE_DESC = zeroed();
            if self.shape.levels == 0 {
                resource.resType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
                resource.res.array.hArray = array;
            } else {
                resource.resType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
                resource.res.mipmap.hMipmappedArray = mipmap;
            }
            let mut object = 0;
            if self.surface {
                ok("surface", cuSurfObjectCreate(&mut object, &resource))?;
            } else {
                let how = self.description();
                ok(
                    "texture",
                    cuTexObjectCreate(&mut object, &resource, &how, null()),
                )?;
            }
            let text = CString::new(self.ptx()).unwrap_or_default();
            let (mut module, mut function) = (null_mut(), null_mut());
            ok(
                "module",
                cuModuleLoadData(&mut module, text.as_ptr().cast()),
            )?;
            ok(
                "function",
                cuModuleGetFunction(&mut function, module, c"k".as_ptr()),
            )?;
            let inputs: Vec<u32> = (0..THREADS).flat_map(self.input).collect();
            let (mut input, mut output) = (0, 0);
            ok("memory", cuMemAlloc_v2(&mut input, 4 * inputs.len()))?;
            ok("memory", cuMemAlloc_v2(&mut output, 16 * THREADS as usize))?;
            ok(
                "memory",
                cuMemcpyHtoD_v2(input, inputs.as_ptr().cast(), 4 * inputs.len()),
            )?;
            let mut words = [object, input, output];
            let mut arguments = words.each_mut().map(|w| (w as *mut u64).cast::<c_void>());
            let at = arguments.as_mut_ptr();
            ok(
                "launch",
                cuLaunchKernel(
                    function,
                    1,
                    1,
                    1,
                    THREADS,
                    1,
                    1,
                    0,
                    null_mut(),
                    at,
                    null_mut(),
                ),
            )?;
            ok("kernel", cuCtxSynchronize())?;
            let mut found = vec![0u32; 4 * THREADS as usize];
            ok(
                "result",
                cuMemcpyDtoH_v2(found.as_mut_ptr().cast(), output, 4 * found.len()),
            )?;
            let mut out: Vec<String> = found
                .chunks(4)
                .flat_map(|words| &words[..self.outputs])
                .map(|word| format!("{word:x}"))
                .collect();
            if self.surface {
                let mut content = self.shape.content(0);
                ok("copy", copy(array, &mut content, self.shape.size(0), false))?;
                out.push(":".to_string());
                out.extend(content.chunks(4).map(|c| {
                    let word = c.iter().rev().fold(0u32, |w, b| w << 8 | u32::from(*b));
                    format!("{word:x}")
                }));
                ok("destroy", cuSurfObjectDestroy(object))?;
            } else {
                ok("destroy", cuTexObjectDestroy(object))?;
            }
            ok("unload", cuModuleUnload(module))?;
            ok("free", cuMemFree_v2(input))?;
            ok("free", cuMemFree_v2(output))?;
            match self.shape.levels {
                0 => ok("destroy", cuArrayDestroy(array))?,
                _ => ok("destroy", cuMipmappedArrayDestroy(mipmap))?,
            }
            Ok(out)
        }
    }

    fn description(&self) -> CUDA_TEXTURE_DESC {
        use CUaddress_mode::*;
        let filter = |mixes: bool| match mixes {
            true => CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
            false => CUfilter_mode::CU_TR_FILTER_MODE_POINT,
        };
        // SAFETY: all zeros are a description.
        let mut how: CUDA_TEXTURE_DESC = unsafe { zeroed() };
        how.addressMode = [match self.edge {
            Edge::Clamp => CU_TR_ADDRESS_MODE_CLAMP,
            Edge::Wrap => CU_TR_ADDRESS_MODE_WRAP,
            Edge::Mirror => CU_TR_ADDRESS_MODE_MIRROR,
            Edge::Border => CU_TR_ADDRESS_MODE_BORDER,
        }; 3];
        how.filterMode = filter(self.linear);
        how.mipmapFilterMode = filter(self.mixed);
        how.flags = self.flags;
        how.mipmapLevelBias = self.bias;
        [how.minMipmapLevelClamp, how.maxMipmapLevelClamp] = self.clamp;
        how.borderColor = [5.0, 6.0, 7.0, 8.0];
        how
    }
}

fn ok(what: &str, answer: CUresult) -> Result<(), String> {
    match answer {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => {
            if let Some(why) = diagnosis() {
                eprintln!("{why:?}");
            }
            Err(format!("{what}: {}", code as i32))
        }
    }
}

/// # Safety
///
/// The array is as large as that.
unsafe fn copy(
    array: CUarray,
    host: &mut [u8],
    [row, rows, slices]: [usize; 3],
    there: bool,
) -> CUresult {
    use CUmemorytype::{CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_HOST};
    let host = host.as_mut_ptr().cast::<c_void>();
    let (here, far) = (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_ARRAY);
    let copy = CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: if there { here } else { far },
        srcHost: host,
        srcDevice: 0,
        srcArray: array,
        reserved0: null_mut(),
        srcPitch: row,
        srcHeight: rows,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: if there { far } else { here },
        dstHost: host,
        dstDevice: 0,
        dstArray: array,
        reserved1: null_mut(),
        dstPitch: row,
        dstHeight: rows,
        WidthInBytes: row,
        Height: rows,
        Depth: slices,
    };
    // SAFETY: the pointers are the caller's.
    unsafe { cuMemcpy3D_v2(&copy) }
}
