//! Devices: how many, their names and attributes. What the configuration fixes comes from there, the rest is an H100's.

use super::api::{Out, Text, driver_api};
use super::codes::Code;
use crate::Config;

/// The compute capability that is answered: 9.0.
pub(super) const CAPABILITY: (i32, i32) = (9, 0);

/// A `CU_DEVICE_ATTRIBUTE_*` by number. Features that the simulator lacks (textures, arrays, graphics) are 0.
fn attribute(config: &Config, device: u32, number: u32) -> Option<i32> {
    let most = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    Some(match number {
        1 => 1024,                                  // threads per block
        2 | 3 => 1024,                              // block x, y
        4 => 64,                                    // block z
        5 => i32::MAX,                              // grid x
        6 | 7 => 65_535,                            // grid y, z
        8 => most(config.default_shared_per_block), // shared memory per block
        9 => 65_536,                                // constant memory
        10 => 32,                                   // warp
        11 => i32::MAX,                             // pitch
        12 => 65_536,                               // registers per block
        13 => 1_000_000, // clock, kHz: one simulated nanosecond per instruction
        14 => 512,       // texture alignment
        15 => 1,         // overlap of copies and kernels
        16 => most(config.sms), // multiprocessors
        17 => 0,         // time limit on kernels: the step budget is none of the driver's
        18 => 0,         // integrated
        19 => 1,         // maps host memory
        20 => 0,         // compute mode: default
        30 => 512,       // surface alignment
        31 => 1,         // concurrent kernels
        32 => 0,         // ECC
        33 => most(device), // PCI bus
        34 => 0,         // PCI device
        35 => 0,         // TCC
        36 => 1_000_000, // memory clock, kHz
        37 => 512,       // bus width
        38 => 1 << 20,   // L2 cache
        39 => most(config.threads_per_sm), // threads per multiprocessor
        40 => 3,         // copy engines
        41 => 1,         // unified addressing
        50 => 0,         // PCI domain
        51 => 32,        // texture pitch alignment
        75 => CAPABILITY.0,
        76 => CAPABILITY.1,
        78 => 1,                                 // stream priorities
        79 | 80 => 1,                            // L1 caches global and local memory
        81 => most(config.shared_per_sm),        // shared memory per multiprocessor
        82 => 65_536,                            // registers per multiprocessor
        83 => 1,                                 // managed memory
        84 | 85 => 0,                            // multi-GPU board
        86 => 1,                                 // native atomics between host and device
        87 => 2,                                 // single to double precision
        88 => 0,                                 // pageable memory is not accessible
        89 => 1,                                 // concurrent managed access
        90 => 1,                                 // compute preemption
        91 => 1,                                 // host pointers of registered memory work
        92..=94 | 122..=124 => 1,                // stream memory operations
        95 => 1,                                 // cooperative launch
        96 => 0,                                 // cooperative launch over several devices
        97 => most(config.max_shared_per_block), // shared memory per block when opted in
        98 => 0,                                 // flush of remote writes
        99 => 1,                                 // host registration
        100 => 0,                                // pageable access through the host's page tables
        101 => 1,                                // direct access of managed memory from the host
        102 => 1,                                // virtual memory management
        103 => 1,                                // POSIX descriptors
        104 | 105 => 0,                          // Windows handles
        106 => most(config.blocks_per_sm),       // blocks per multiprocessor
        107 => 0,                                // compression
        108 | 109 => 0,                          // persisting L2
        110 => 0,                                // GPUDirect RDMA with VMM
        111 => most(config.reserved_shared),     // reserved shared memory per block
        112 => 0,                                // sparse arrays
        113 => 1,                                // read-only host registration
        114 => 0,                                // timeline semaphores
        115 => 1,                                // memory pools
        116..=118 => 0,                          // GPUDirect RDMA
        119 => 0,                                // pool handle types
        120 => 1,                                // cluster launch
        121 => 0,                                // deferred mapping of arrays
        125 => 0,                                // DMA-BUF
        126 => 0,                                // IPC events
        127 => 0,                                // memory synchronisation domains
        128 => 0,                                // tensor map access
        132 => 1,                                // multicast
        21..=29 | 42..=49 | 52..=74 | 77 => 0,   // textures and arrays
        129..=131 | 133..=150 => 0,
        _ => return None,
    })
}

driver_api! {
    fn cuDeviceGet(s, device: Out<i32>, ordinal: i32) {
        let found = s.driver()?.device(ordinal)?;
        device.set(found as i32)
    }
    fn cuDeviceGetCount(s, count: Out<i32>) {
        let devices = s.driver()?.machine.config().devices;
        count.set(devices as i32)
    }
    fn cuDeviceGetName(s, name: Out<u8>, len: i32, device: i32) {
        s.driver()?.device(device)?;
        name.require()?;
        let Some(room) = usize::try_from(len).ok().filter(|&len| len > 0) else {
            return Err(Code::INVALID_VALUE);
        };
        let text = format!("gsan simulated GPU (sm_{}{})", CAPABILITY.0, CAPABILITY.1);
        let bytes = text.bytes().take(room - 1).chain([0]);
        for (index, byte) in bytes.enumerate() {
            name.at(index).set(byte)?;
        }
        Ok(())
    }
    fn cuDeviceGetUuid(s, uuid: Out<[u8; 16]>, device: i32) {
        let device = s.driver()?.device(device)?;
        uuid.set(uuid_of(device))
    }
    fn cuDeviceGetUuid_v2(s, uuid: Out<[u8; 16]>, device: i32) {
        let device = s.driver()?.device(device)?;
        uuid.set(uuid_of(device))
    }
    fn cuDeviceTotalMem_v2(s, bytes: Out<usize>, device: i32) {
        let driver = s.driver()?;
        driver.device(device)?;
        bytes.set(driver.machine.config().memory_bytes as usize)
    }
    fn cuDeviceGetAttribute(s, value: Out<i32>, number: u32, device: i32) {
        let driver = s.driver()?;
        let device = driver.device(device)?;
        value.set(attribute(driver.machine.config(), device, number).ok_or(Code::INVALID_VALUE)?)
    }
    fn cuDeviceComputeCapability(s, major: Out<i32>, minor: Out<i32>, device: i32) {
        s.driver()?.device(device)?;
        major.set(CAPABILITY.0)?;
        minor.set(CAPABILITY.1)
    }
    fn cuDeviceGetPCIBusId(s, text: Out<u8>, len: i32, device: i32) {
        let device = s.driver()?.device(device)?;
        text.require()?;
        let id = format!("0000:{device:02X}:00.0");
        if usize::try_from(len).unwrap_or(0) <= id.len() {
            return Err(Code::INVALID_VALUE);
        }
        for (index, byte) in id.bytes().chain([0]).enumerate() {
            text.at(index).set(byte)?;
        }
        Ok(())
    }
    fn cuDeviceGetByPCIBusId(s, device: Out<i32>, text: Text) {
        let devices = s.driver()?.machine.config().devices;
        let id = text.utf8().map_err(|_| Code::INVALID_VALUE)?;
        let found = (0..devices).find(|device| {
            let full = format!("0000:{device:02X}:00.0");
            full.eq_ignore_ascii_case(id) || full[5..].eq_ignore_ascii_case(id)
        });
        device.set(found.ok_or(Code::INVALID_DEVICE)? as i32)
    }
}

/// Recognisable, and another for each device.
fn uuid_of(device: u32) -> [u8; 16] {
    let mut uuid = *b"gsan-simulated\0\0";
    uuid[14..].copy_from_slice(&(device as u16).to_be_bytes());
    uuid
}
