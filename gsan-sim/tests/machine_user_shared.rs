//! Words of gsan's runtime behind a block's shared memory: the runtime's functions reach them, the user's do not.

mod common;

use common::{Bench, seeded};
use gsan_sim::MemoryModel;
use gsan_sim::machine::{FaultKind, LaunchDesc, Stop};

/// The user's 64 bytes are 48 static ones and 16 dynamic ones; 128 more lie behind.
const USER: u32 = 16;
const ALL: u32 = USER + 128;
/// Where the user's end is, behind what the system has.
const END: u32 = 1024 + 48 + USER;

/// How a run ends whose body uses `%r1`, an address in shared memory, and `%rd1`, its generic form.
fn run(memory: MemoryModel, body: &str, at: u32) -> Result<(), Stop> {
    let mut config = seeded(0);
    config.memory = memory;
    let mut b = Bench::with(config, &format!(
        ".func helper(.param .b32 a) {{ .reg .b32 %a; ld.param.b32 %a, [a]; st.shared.u32 [%a], 1; ret; }}
        .func helper_of_hook(.param .b32 a) {{ .reg .b32 %a, %b; ld.param.b32 %a, [a]; atom.shared.add.u32 %b, [%a], 1; ret; }}
        .func __gsan_hook(.param .b32 a) {{ .reg .b32 %a, %b; ld.param.b32 %a, [a];
          ld.shared.u32 %b, [%a]; add.u32 %b, %b, 1; st.shared.u32 [%a], %b;
          {{ .param .b32 p; st.param.b32 [p], %a; call.uni helper_of_hook, (p); }} ret; }}
        .visible .entry k() {{ .reg .b32 %r<5>; .reg .b64 %rd<3>; .shared .align 8 .b8 own[48];
          mov.u32 %r2, own; mov.u32 %r1, {at}; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1; {body} ret; }}"
    ));
    let launch = LaunchDesc {
        device: 0,
        function: b.kernel("k"),
        grid: [1; 3],
        block: [32, 1, 1],
        cluster: [1; 3],
        dynamic_shared: ALL,
        user_dynamic: Some(USER),
        params: Vec::new(),
        cooperative: false,
    };
    b.machine.launch(launch).unwrap();
    b.finish()
}

#[test]
fn the_users_accesses_end_where_the_users_part_does() {
    let call =
        |name: &str| format!("{{ .param .b32 p; st.param.b32 [p], %r1; call.uni {name}, (p); }}");
    let hook = call("__gsan_hook");
    for memory in [MemoryModel::Sequential, MemoryModel::Weak] {
        for body in [
            "ld.shared.u32 %r3, [%r1]; st.shared.u32 [%r2], %r3;",
            "st.shared.u32 [%r1], 1;",
            "atom.shared.add.u32 %r3, [%r1], 1;",
            "ld.u32 %r3, [%rd1]; st.shared.u32 [%r2], %r3;",
            "st.u32 [%rd1], 1;",
            &call("helper"),
            // Also behind a hook that has been there.
            &format!("{hook} st.shared.u32 [%r1], 1;"),
        ] {
            assert_eq!(run(memory, body, END - 4), Ok(()), "{body}");
            for at in [END, END + 124] {
                let stop = run(memory, body, at).unwrap_err();
                assert!(
                    matches!(
                        stop,
                        Stop::Fault {
                            kind: FaultKind::SharedOutOfBounds,
                            ..
                        }
                    ),
                    "{body}: {stop}"
                );
                assert!(stop.site().is_some_and(|s| s.hook.is_none()), "{stop}");
            }
        }
        assert_eq!(run(memory, &hook, END), Ok(()));
        assert_eq!(run(memory, &hook, END + 124), Ok(()));
        assert!(run(memory, &hook, END + 128).is_err());
    }
}
