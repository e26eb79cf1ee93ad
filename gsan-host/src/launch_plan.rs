//! What a launch needs beyond what the user asked for, and whether it can run: numbers only, no driver.

use crate::error::{Error, Result};
use crate::request::{Arg, KernelInfo, LaunchSpec};
use gsan_device::layout::BlockState;

/// What the device allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceLimits {
    pub(crate) threads_per_block: u32,
    /// Shared memory per block with opting in.
    pub(crate) shared_per_block: u32,
    /// Registers per block.
    pub(crate) registers_per_block: u32,
    pub(crate) sms: u32,
}

/// Shared memory that needs no opting in.
pub(crate) const SHARED_WITHOUT_OPT_IN: u32 = 48 << 10;

/// What the driver says of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelFacts {
    pub(crate) threads_per_block: u32,
    pub(crate) registers: u32,
    pub(crate) static_shared: u32,
}

/// Dynamic shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedPlan {
    /// What the launch asks for.
    pub(crate) dynamic: u32,
    /// Whether the block state found room at its end (then `dynamic` is odd).
    pub(crate) grown: bool,
}

/// Where a block finds its state (ARCHITECTURE.md): with S = static + dynamic rounded up to 128, the state lies at
/// S - 128. So the user's part must end there, and the launch must not be rounded beyond S: static + dynamic is S - 1 or
/// S - 2, whichever makes dynamic odd. Where that exceeds `limit`, nothing is grown, and an odd size is made even; so it is in a
/// launch with clusters, where the hardware takes a bare offset into shared memory for one of the cluster's first block.
pub(crate) fn plan_shared(
    static_shared: u32,
    user_dynamic: u32,
    limit: u32,
    clusters: bool,
) -> SharedPlan {
    let room = u64::from(BlockState::ROOM);
    let user_end = u64::from(static_shared) + u64::from(user_dynamic);
    let end = user_end.next_multiple_of(room) + room;
    let dynamic = end - 1 - u64::from(static_shared);
    let dynamic = dynamic - u64::from(dynamic.is_multiple_of(2));
    if !clusters
        && end <= u64::from(limit)
        && let Ok(dynamic) = u32::try_from(dynamic)
    {
        return SharedPlan {
            dynamic,
            grown: true,
        };
    }
    SharedPlan {
        dynamic: user_dynamic + user_dynamic % 2,
        grown: false,
    }
}

/// The argument bytes, checked against the kernel's parameters.
pub(crate) fn arguments(kernel: &KernelInfo, args: &[Arg]) -> Result<Vec<Vec<u8>>> {
    let wrong = |what: String| Error::Arguments {
        kernel: kernel.name.clone(),
        what,
        signature: kernel.to_string(),
    };
    if args.len() != kernel.params.len() {
        return Err(wrong(format!(
            "{} given, {} expected",
            args.len(),
            kernel.params.len()
        )));
    }
    let mut all = Vec::with_capacity(args.len() + 1);
    for (i, (arg, param)) in args.iter().zip(&kernel.params).enumerate() {
        let bytes = arg.bytes();
        if bytes.len() != param.size as usize {
            return Err(wrong(format!(
                "argument {} has {} bytes, parameter `{}` (.{}) has {}",
                i + 1,
                bytes.len(),
                param.name,
                param.ty,
                param.size
            )));
        }
        all.push(bytes);
    }
    Ok(all)
}

fn product(shape: [u32; 3]) -> u64 {
    shape
        .iter()
        .map(|&n| u64::from(n))
        .fold(1, u64::saturating_mul)
}

/// Threads per block.
pub(crate) fn threads(spec: &LaunchSpec) -> u64 {
    product(spec.block)
}

/// Blocks.
pub(crate) fn blocks(spec: &LaunchSpec) -> u64 {
    product(spec.grid)
}

/// Checks what does not depend on instrumentation: shapes and shared memory.
pub(crate) fn check_shape(
    spec: &LaunchSpec,
    limits: &DeviceLimits,
    static_shared: u32,
) -> Result<()> {
    let refuse = |what: String| {
        Err(Error::Launch {
            kernel: spec.kernel.clone(),
            what,
        })
    };
    const LARGEST_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
    const LARGEST_BLOCK: [u32; 3] = [1024, 1024, 64];
    for axis in 0..3 {
        let name = ["x", "y", "z"][axis];
        if spec.grid[axis] == 0 || spec.grid[axis] > LARGEST_GRID[axis] {
            return refuse(format!(
                "grid {name} is {}, it must be 1 to {}",
                spec.grid[axis], LARGEST_GRID[axis]
            ));
        }
        if spec.block[axis] == 0 || spec.block[axis] > LARGEST_BLOCK[axis] {
            return refuse(format!(
                "block {name} is {}, it must be 1 to {}",
                spec.block[axis], LARGEST_BLOCK[axis]
            ));
        }
        if let Some(cluster) = spec.cluster
            && (cluster[axis] == 0 || !spec.grid[axis].is_multiple_of(cluster[axis]))
        {
            return refuse(format!(
                "grid {name} is {}, which is not a multiple of the cluster's {}",
                spec.grid[axis], cluster[axis]
            ));
        }
    }
    if threads(spec) > u64::from(limits.threads_per_block) {
        return refuse(format!(
            "{} threads per block, the device allows {}",
            threads(spec),
            limits.threads_per_block
        ));
    }
    let shared = u64::from(static_shared) + u64::from(spec.dynamic_shared);
    if shared > u64::from(limits.shared_per_block) {
        return refuse(format!(
            "{shared} bytes of shared memory per block ({static_shared} static, {} dynamic), the device allows {}",
            spec.dynamic_shared, limits.shared_per_block
        ));
    }
    Ok(())
}

/// Checks `.reqntid`, which the driver only answers with "invalid value".
pub(crate) fn check_required_threads(spec: &LaunchSpec, required: Option<[u32; 3]>) -> Result<()> {
    match required {
        Some(required) if required != spec.block => Err(Error::Launch {
            kernel: spec.kernel.clone(),
            what: format!(
                "blocks are {:?}, the kernel demands {required:?} (.reqntid)",
                spec.block
            ),
        }),
        _ => Ok(()),
    }
}

/// Checks registers × threads; `plain` are the facts of the kernel as the user wrote it, looked up only where needed.
pub(crate) fn check_registers(
    spec: &LaunchSpec,
    limits: &DeviceLimits,
    facts: KernelFacts,
    plain: impl FnOnce() -> Option<KernelFacts>,
) -> Result<()> {
    let threads = threads(spec);
    if threads <= u64::from(facts.threads_per_block) {
        return Ok(());
    }
    let before = match plain() {
        Some(plain) if threads <= u64::from(plain.threads_per_block) => format!(
            ": without instrumentation it has {} registers and runs with up to {} threads. Use smaller blocks, or write \
             `.maxntid {threads}, 1, 1` after the kernel's parameters (`__launch_bounds__({threads})` in CUDA C++), so that the compiler \
             keeps to it",
            plain.registers, plain.threads_per_block
        ),
        Some(plain) => format!(
            ": also without instrumentation ({} registers) it runs with {} at most",
            plain.registers, plain.threads_per_block
        ),
        None => String::new(),
    };
    Err(Error::Launch {
        kernel: spec.kernel.clone(),
        what: format!(
            "{threads} threads per block with {} registers each; the device has {} registers per block, so {} threads at \
             most{before}",
            facts.registers, limits.registers_per_block, facts.threads_per_block
        ),
    })
}

/// Checks that all blocks of a cooperative launch are resident at once. The arguments are blocks per multiprocessor.
pub(crate) fn check_cooperative(
    spec: &LaunchSpec,
    limits: &DeviceLimits,
    per_sm: u32,
    plain_per_sm: impl FnOnce() -> Option<u32>,
) -> Result<()> {
    let fit = u64::from(per_sm) * u64::from(limits.sms);
    if blocks(spec) <= fit {
        return Ok(());
    }
    let before = match plain_per_sm() {
        Some(plain) => {
            let plain = u64::from(plain) * u64::from(limits.sms);
            format!("; {plain} fit without instrumentation")
        }
        None => String::new(),
    };
    Err(Error::Launch {
        kernel: spec.kernel.clone(),
        what: format!(
            "a cooperative launch of {} blocks, but {fit} fit on the device at once ({per_sm} on each of {} \
             multiprocessors){before}. Launch at most {fit} blocks",
            blocks(spec),
            limits.sms
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{ModuleId, ParamInfo, StreamId};
    use proptest::prelude::*;

    const LIMITS: DeviceLimits = DeviceLimits {
        threads_per_block: 1024,
        shared_per_block: 232_448,
        registers_per_block: 65536,
        sms: 4,
    };

    fn spec() -> LaunchSpec {
        LaunchSpec::new(ModuleId(0), "k", [8, 1, 1], [256, 1, 1], StreamId(0))
    }

    fn kernel() -> KernelInfo {
        let param = |name: &str, ty: &str, size| ParamInfo {
            name: name.into(),
            ty: ty.into(),
            size,
            align: size,
        };
        KernelInfo {
            name: "k".into(),
            params: vec![param("a", "u64", 8), param("n", "u32", 4)],
        }
    }

    proptest! {
        #[test]
        fn the_state_lies_behind_the_users_part_and_before_the_end(
            static_shared in 0u32..240_000, user in 0u32..240_000
        ) {
            let limit = LIMITS.shared_per_block;
            let plan = plan_shared(static_shared, user, limit, false);
            prop_assert!(!plan_shared(static_shared, user, limit, true).grown);
            if plan.grown {
                prop_assert_eq!(plan.dynamic % 2, 1);
                let asked = static_shared + plan.dynamic;
                let total = asked.next_multiple_of(128); // %total_smem_size
                let state = total - BlockState::ROOM;
                prop_assert!(state >= static_shared + user);
                prop_assert!(state + size_of::<BlockState>() as u32 <= asked);
                prop_assert!(asked == total - 1 || asked == total - 2);
                prop_assert!(total <= limit);
                prop_assert!(plan.dynamic - user < 3 * BlockState::ROOM);
            } else {
                prop_assert_eq!(plan.dynamic % 2, 0);
                prop_assert!(plan.dynamic == user || plan.dynamic == user + 1);
                prop_assert!(static_shared + user + 2 * BlockState::ROOM > limit);
            }
        }
    }

    #[test]
    fn a_full_block_is_not_grown() {
        assert_eq!(
            plan_shared(0, 232_448, 232_448, false),
            SharedPlan {
                dynamic: 232_448,
                grown: false
            }
        );
        assert_eq!(
            plan_shared(0, 232_320, 232_448, false),
            SharedPlan {
                dynamic: 232_447,
                grown: true
            }
        );
        assert_eq!(
            plan_shared(0, 232_321, 232_448, false),
            SharedPlan {
                dynamic: 232_322,
                grown: false
            }
        );
        assert_eq!(
            plan_shared(0, 0, 49_152, false),
            SharedPlan {
                dynamic: 127,
                grown: true
            }
        );
    }

    #[test]
    fn arguments_must_fit_one_by_one() {
        let k = kernel();
        assert_eq!(
            arguments(&k, &[Arg::Pointer(1), Arg::u32(2)])
                .unwrap()
                .len(),
            2
        );
        let few = arguments(&k, &[Arg::Pointer(1)]).unwrap_err().to_string();
        assert!(
            few.contains("1 given, 2 expected") && few.contains("k(.u64 8 bytes, .u32 4 bytes)"),
            "{few}"
        );
        let wide = arguments(&k, &[Arg::Pointer(1), Arg::u64(2)])
            .unwrap_err()
            .to_string();
        assert!(
            wide.contains("argument 2 has 8 bytes, parameter `n` (.u32) has 4"),
            "{wide}"
        );
        assert!(arguments(&k, &[Arg::u32(1), Arg::Pointer(2)]).is_err());
    }

    #[test]
    fn impossible_shapes_are_refused_with_the_numbers() {
        assert!(check_shape(&spec(), &LIMITS, 0).is_ok());
        let cases = [
            (
                LaunchSpec {
                    grid: [0, 1, 1],
                    ..spec()
                },
                "grid x is 0",
            ),
            (
                LaunchSpec {
                    grid: [1, 65536, 1],
                    ..spec()
                },
                "grid y is 65536",
            ),
            (
                LaunchSpec {
                    block: [32, 1, 65],
                    ..spec()
                },
                "block z is 65",
            ),
            (
                LaunchSpec {
                    block: [1024, 1, 2],
                    ..spec()
                },
                "2048 threads per block",
            ),
            (
                LaunchSpec {
                    cluster: Some([3, 1, 1]),
                    ..spec()
                },
                "not a multiple of the cluster's 3",
            ),
            (
                LaunchSpec {
                    cluster: Some([0, 1, 1]),
                    ..spec()
                },
                "cluster's 0",
            ),
            (
                LaunchSpec {
                    dynamic_shared: u32::MAX,
                    ..spec()
                },
                "the device allows 232448",
            ),
        ];
        for (spec, part) in cases {
            let error = check_shape(&spec, &LIMITS, 8).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn too_many_registers_are_told_with_before_and_after() {
        let after = KernelFacts {
            threads_per_block: 128,
            registers: 255,
            static_shared: 0,
        };
        let before = KernelFacts {
            threads_per_block: 1024,
            registers: 40,
            static_shared: 0,
        };
        let text = check_registers(&spec(), &LIMITS, after, || Some(before))
            .unwrap_err()
            .to_string();
        for part in [
            "256 threads",
            "255 registers",
            "65536",
            "128 threads at most",
            "40 registers",
            ".maxntid 256",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let both = check_registers(&spec(), &LIMITS, after, || Some(after))
            .unwrap_err()
            .to_string();
        assert!(both.contains("also without instrumentation"), "{both}");
        assert!(check_registers(&spec(), &LIMITS, before, || panic!("not needed")).is_ok());
    }

    #[test]
    fn a_cooperative_grid_must_fit_at_once() {
        assert!(check_cooperative(&spec(), &LIMITS, 2, || panic!("not needed")).is_ok());
        let text = check_cooperative(&spec(), &LIMITS, 1, || Some(2))
            .unwrap_err()
            .to_string();
        for part in [
            "8 blocks",
            "4 fit",
            "1 on each of 4",
            "8 fit without",
            "at most 4 blocks",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
