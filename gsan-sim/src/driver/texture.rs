//! Arrays, mipmaps of them, texture objects and surface objects. An array is memory like any other, rows and slices one behind
//! the other; block-compressed formats, sparse arrays and views of a resource are not there.

use super::api::{In, Out, Session, driver_api};
use super::codes::{Answer, Code};
use super::state::{Driver, Handle};
use crate::machine::texture::{Channel, Detail, Edge, Image, Texture};
use std::collections::HashMap;
use std::sync::Arc;

/// `CUDA_ARRAY3D_LAYERED`.
const LAYERED: u32 = 1;
/// `CUDA_ARRAY3D_CUBEMAP`.
const CUBE: u32 = 4;
/// `CUDA_ARRAY3D_TEXTURE_GATHER`.
const GATHER: u32 = 8;
/// `CUDA_ARRAY3D_SURFACE_LDST`, and those: what is understood.
const FLAGS: u32 = LAYERED | CUBE | GATHER | 2;

/// More bytes, rows or columns than any memory has.
const MOST: u64 = 1 << 40;

/// What the driver knows of them.
#[derive(Default)]
pub(super) struct Images {
    arrays: HashMap<Handle, Array>,
    /// The arrays of each, the largest first.
    mipmaps: HashMap<Handle, Vec<Handle>>,
    /// What objects were made of.
    objects: HashMap<Handle, (Resource, Option<Description>)>,
}

/// An array.
#[derive(Clone, Copy)]
struct Array {
    /// How it was asked for.
    what: Array3D,
    /// Where it lies.
    image: Image,
    /// It is a mipmap's level, and goes with it.
    is_level: bool,
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Array2D {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Array3D {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

/// `CUDA_RESOURCE_DESC`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Resource {
    kind: u32,
    /// An array; or an address, format and channels, bytes or width, height, pitch.
    words: [u64; 16],
    flags: u32,
}

/// `CUDA_TEXTURE_DESC`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Description {
    edges: [u32; 3],
    filter: u32,
    flags: u32,
    anisotropy: u32,
    mipmap_filter: u32,
    bias: f32,
    levels: [f32; 2],
    border: [f32; 4],
    reserved: [i32; 12],
}

const _: () = assert!(size_of::<Array2D>() == 24 && size_of::<Array3D>() == 40);
const _: () = assert!(size_of::<Resource>() == 144 && size_of::<Description>() == 104);

fn channel(format: u32, channels: u64) -> Answer<Channel> {
    if !matches!(channels, 1 | 2 | 4) {
        return Err(Code::INVALID_VALUE);
    }
    Channel::of_driver(format).ok_or(Code::INVALID_VALUE)
}

impl Driver {
    /// The image in an array.
    pub(super) fn image(&self, array: Handle) -> Answer<Image> {
        self.array(array).map(|array| array.image)
    }

    fn array(&self, array: Handle) -> Answer<Array> {
        let found = self.images.arrays.get(&array).copied();
        // An array goes with its context.
        let found = found.filter(|array| self.allocations.contains_key(&array.image.address));
        found.ok_or(Code::INVALID_HANDLE)
    }

    fn mipmap(&self, mipmap: Handle) -> Answer<&Vec<Handle>> {
        let found = self.images.mipmaps.get(&mipmap);
        found.ok_or(Code::INVALID_HANDLE)
    }

    fn new_array(&mut self, context: Handle, what: Array3D, is_level: bool) -> Answer<Handle> {
        let channel = channel(what.format, u64::from(what.channels))?;
        if what.flags & !FLAGS != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let (layered, cube) = (what.flags & LAYERED != 0, what.flags & CUBE != 0);
        let extents = [what.width, what.height, what.depth].map(|n| n as u64);
        let is_cube = extents[0] == extents[1]
            && extents[2].is_multiple_of(6)
            && (layered || extents[2] == 6);
        if extents.iter().any(|&n| n > MOST)
            || what.width == 0
            || layered && what.depth == 0
            || cube && !(is_cube && what.depth != 0)
            || cube && what.flags & GATHER != 0
        {
            return Err(Code::INVALID_VALUE);
        }
        let texel = channel.bytes() * u64::from(what.channels);
        let sizes = extents.map(|n| n.max(1));
        let pitch = sizes[0].checked_mul(texel).ok_or(Code::INVALID_VALUE)?;
        let slice = pitch.checked_mul(sizes[1]).ok_or(Code::INVALID_VALUE)?;
        let len = slice.checked_mul(sizes[2]).filter(|&n| n < MOST);
        let len = len.ok_or(Code::OUT_OF_MEMORY)?;
        let address = self.allocate_device(context, len as usize)?;
        let handle = self.new_handle();
        let image = Image {
            address,
            extents,
            layered,
            cube,
            pitch,
            slice,
            channel,
            channels: u64::from(what.channels),
        };
        let array = Array {
            what,
            image,
            is_level,
        };
        self.images.arrays.insert(handle, array);
        Ok(handle)
    }

    /// Each level has half the width, height and depth of the one before; layers and faces stay as many.
    fn new_mipmap(&mut self, context: Handle, what: Array3D, levels: u32) -> Answer<Handle> {
        let is_stack = what.flags & (LAYERED | CUBE) != 0;
        let depth = if is_stack { 0 } else { what.depth };
        let longest = what.width.max(what.height).max(depth).max(1);
        let levels = levels.clamp(1, 1 + longest.ilog2());
        let mut arrays = Vec::new();
        for level in 0..levels {
            let less = |n: usize| if n == 0 { 0 } else { (n >> level).max(1) };
            let one = Array3D {
                width: less(what.width),
                height: less(what.height),
                depth: if is_stack {
                    what.depth
                } else {
                    less(what.depth)
                },
                ..what
            };
            match self.new_array(context, one, true) {
                Ok(array) => arrays.push(array),
                Err(code) => {
                    self.drop_arrays(&arrays);
                    return Err(code);
                }
            }
        }
        let handle = self.new_handle();
        self.images.mipmaps.insert(handle, arrays);
        Ok(handle)
    }

    fn drop_arrays(&mut self, arrays: &[Handle]) {
        for array in arrays {
            if let Some(array) = self.images.arrays.remove(array) {
                super::memory::free_now(self, array.image.address);
            }
        }
    }

    /// The images of a mipmap.
    fn levels(&self, mipmap: Handle) -> Answer<Vec<Image>> {
        let arrays = self.mipmap(mipmap)?;
        arrays.iter().map(|&array| self.image(array)).collect()
    }

    /// What a resource's images are, and whether they are linear memory.
    fn resource(&self, what: &Resource) -> Answer<(Vec<Image>, bool)> {
        let [first, second, third, height, pitch, ..] = what.words;
        let linear = |extents: [u64; 3], pitch: u64| -> Answer<Image> {
            let channels = second >> 32;
            if extents.iter().any(|&n| n > MOST) {
                return Err(Code::INVALID_VALUE);
            }
            Ok(Image {
                address: first,
                extents,
                layered: false,
                cube: false,
                pitch,
                slice: 0,
                channel: channel(second as u32, channels)?,
                channels,
            })
        };
        match what.kind {
            0 => Ok((vec![self.image(first)?], false)),
            // An H200's driver calls a wrong mipmap an invalid value, a wrong array an invalid handle.
            1 => Ok((self.levels(first).map_err(|_| Code::INVALID_VALUE)?, false)),
            2 => {
                let mut image = linear([third, 0, 0], 0)?;
                image.extents[0] = third / image.texel();
                Ok((vec![image], true))
            }
            3 => Ok((vec![linear([third, height, 0], pitch)?], false)),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn new_object(&mut self, texture: Texture, what: Resource, how: Option<Description>) -> Handle {
        let handle = self.new_handle();
        self.images.objects.insert(handle, (what, how));
        let textures = &mut self.machine.memory_mut().textures;
        textures.insert(handle, Arc::new(texture));
        handle
    }

    fn object(&self, handle: Handle) -> Answer<(Resource, Option<Description>)> {
        let found = self.images.objects.get(&handle).copied();
        found.ok_or(Code::INVALID_VALUE)
    }

    fn drop_object(&mut self, handle: Handle) -> Answer {
        self.images.objects.remove(&handle);
        let gone = self.machine.memory_mut().textures.remove(&handle);
        gone.map(|_| ()).ok_or(Code::INVALID_VALUE)
    }
}

fn new_texture(
    session: &mut Session,
    what: &In<Resource>,
    how: &In<Description>,
) -> Answer<Handle> {
    let (driver, _) = session.healthy()?;
    let what = what.get()?;
    let (levels, plain) = driver.resource(&what)?;
    let how = how.get()?;
    let edge = |n: u32| {
        Ok(match n {
            0 => Edge::Wrap,
            1 => Edge::Clamp,
            2 => Edge::Mirror,
            3 => Edge::Border,
            _ => return Err(Code::INVALID_VALUE),
        })
    };
    let [x, y, z] = how.edges;
    let flag = |bit: u32| how.flags & bit != 0;
    let is_mipmap = what.kind == 1;
    let detail = match is_mipmap {
        true => Detail {
            mixed: how.mipmap_filter == 1,
            bias: how.bias,
            ends: how.levels,
        },
        false => Detail::NONE,
    };
    let texture = Texture {
        levels,
        detail,
        edges: [edge(x)?, edge(y)?, edge(z)?],
        linear: how.filter == 1,
        seamless: flag(0x40),
        normalized: flag(2),
        integers: flag(1),
        srgb: flag(0x10),
        anisotropic: how.anisotropy > 1,
        // Linear memory has no edges: nothing is outside of it.
        border: if plain { [0.0; 4] } else { how.border },
        plain,
    };
    if how.filter > 1 || how.mipmap_filter > 1 && is_mipmap || texture.linear && plain {
        return Err(Code::INVALID_VALUE);
    }
    Ok(driver.new_object(texture, what, Some(how)))
}

fn new_surface(session: &mut Session, what: &In<Resource>) -> Answer<Handle> {
    let (driver, _) = session.healthy()?;
    let what = what.get()?;
    if what.kind != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (levels, _) = driver.resource(&what)?;
    let texture = Texture {
        levels,
        detail: Detail::NONE,
        edges: [Edge::Border; 3],
        linear: false,
        seamless: false,
        normalized: false,
        integers: true,
        srgb: false,
        anisotropic: false,
        border: [0.0; 4],
        plain: true,
    };
    Ok(driver.new_object(texture, what, None))
}

driver_api! {
    fn cuArrayCreate_v2(s, array: Out<Handle>, what: In<Array2D>) {
        array.require()?;
        let (driver, context) = s.healthy()?;
        let Array2D { width, height, format, channels } = what.get()?;
        array.set(driver.new_array(context, Array3D { width, height, depth: 0, format, channels, flags: 0 }, false)?)
    }
    fn cuArray3DCreate_v2(s, array: Out<Handle>, what: In<Array3D>) {
        array.require()?;
        let (driver, context) = s.healthy()?;
        array.set(driver.new_array(context, what.get()?, false)?)
    }
    fn cuArrayGetDescriptor_v2(s, what: Out<Array2D>, array: Handle) {
        what.require()?;
        let Array3D { width, height, format, channels, .. } = s.healthy()?.0.array(array)?.what;
        what.set(Array2D { width, height, format, channels })
    }
    fn cuArray3DGetDescriptor_v2(s, what: Out<Array3D>, array: Handle) {
        what.require()?;
        what.set(s.healthy()?.0.array(array)?.what)
    }
    fn cuArrayDestroy(s, array: Handle) {
        let (driver, context) = s.healthy()?;
        if driver.array(array)?.is_level {
            return Err(Code::INVALID_HANDLE);
        }
        s.wait_for_all(context)?;
        s.driver()?.drop_arrays(&[array]);
        Ok(())
    }
    fn cuMipmappedArrayCreate(s, mipmap: Out<Handle>, what: In<Array3D>, levels: u32) {
        mipmap.require()?;
        let (driver, context) = s.healthy()?;
        mipmap.set(driver.new_mipmap(context, what.get()?, levels)?)
    }
    fn cuMipmappedArrayGetLevel(s, array: Out<Handle>, mipmap: Handle, level: u32) {
        array.require()?;
        let levels = s.healthy()?.0.mipmap(mipmap)?;
        array.set(*levels.get(level as usize).ok_or(Code::INVALID_VALUE)?)
    }
    fn cuMipmappedArrayDestroy(s, mipmap: Handle) {
        let (driver, context) = s.healthy()?;
        driver.mipmap(mipmap)?;
        s.wait_for_all(context)?;
        let driver = s.driver()?;
        let levels = driver.images.mipmaps.remove(&mipmap).unwrap_or_default();
        driver.drop_arrays(&levels);
        Ok(())
    }
    fn cuTexObjectCreate(s, object: Out<Handle>, what: In<Resource>, how: In<Description>, view: u64) {
        object.require()?;
        if view != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        object.set(new_texture(s, &what, &how)?)
    }
    fn cuTexObjectGetResourceDesc(s, what: Out<Resource>, object: Handle) {
        what.require()?;
        what.set(s.healthy()?.0.object(object)?.0)
    }
    fn cuTexObjectGetTextureDesc(s, how: Out<Description>, object: Handle) {
        how.require()?;
        how.set(s.healthy()?.0.object(object)?.1.ok_or(Code::INVALID_VALUE)?)
    }
    fn cuSurfObjectGetResourceDesc(s, what: Out<Resource>, object: Handle) {
        what.require()?;
        what.set(s.healthy()?.0.object(object)?.0)
    }
    fn cuTexObjectDestroy(s, object: Handle) { s.healthy()?.0.drop_object(object) }
    fn cuSurfObjectCreate(s, object: Out<Handle>, what: In<Resource>) {
        object.require()?;
        object.set(new_surface(s, &what)?)
    }
    fn cuSurfObjectDestroy(s, object: Handle) { s.healthy()?.0.drop_object(object) }
}
