//! What kernels print, and how they end when they end badly.

use crate::kernel::{Kernel, Launch};

/// All of them.
pub fn kernels() -> Vec<Kernel> {
    let mut out = vec![print()];
    out.extend(bad_endings());
    out.extend(exited_block());
    out.push(asynchronous_stores());
    out.push(exited_warps());
    out
}

fn kernel(name: &str, body: &str, launch: Launch) -> Kernel {
    Kernel {
        name: name.to_string(),
        number: 0,
        ptx: format!(".version 8.6\n.target sm_90\n.address_size 64\n{body}"),
        launch,
    }
}

/// A string as PTX initialises it.
fn string(name: &str, text: &str) -> String {
    let bytes: Vec<String> = text.bytes().chain([0]).map(|b| b.to_string()).collect();
    format!(
        ".global .align 1 .b8 {name}[{}] = {{{}}};\n",
        bytes.len(),
        bytes.join(", ")
    )
}

fn print() -> Kernel {
    let format = "%d|%5d|%-5d|%05d|%+d|%u|%x|%#X|%o|%c|%s|%lld|%llx|%f|%.3f|%8.2f|%e|%.2e|%g|%g|%G|%%|%5s|%-5s|\n";
    let body = format!(
        "{}{}.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.visible .entry k(.param .u64 out) {{
  .local .align 8 .b8 depot[256]; .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f64 %f<9>;
  mov.u64 %d1, depot; cvta.local.u64 %d2, %d1; mov.u32 %r1, -42; mov.u32 %r2, 3000000000; mov.u32 %r3, 65; mov.u32 %r4, 42;
  st.local.b32 [%d1], %r1; st.local.b32 [%d1+4], %r1; st.local.b32 [%d1+8], %r4; st.local.b32 [%d1+12], %r1;
  st.local.b32 [%d1+16], %r4; st.local.b32 [%d1+20], %r2; st.local.b32 [%d1+24], %r2; st.local.b32 [%d1+28], %r4;
  st.local.b32 [%d1+32], %r4; st.local.b32 [%d1+36], %r3;
  mov.u64 %d3, word; cvta.global.u64 %d3, %d3; st.local.b64 [%d1+40], %d3;
  mov.u64 %d4, -1234567890123; st.local.b64 [%d1+48], %d4; st.local.b64 [%d1+56], %d4;
  mov.f64 %f1, 0d400921FB54442D18; mov.f64 %f2, 0dC08F400000000000; mov.f64 %f3, 0d3EB0C6F7A0B5ED8D; mov.f64 %f4, 0d42D6BCC41E900000;
  st.local.f64 [%d1+64], %f1; st.local.f64 [%d1+72], %f1; st.local.f64 [%d1+80], %f2; st.local.f64 [%d1+88], %f1;
  st.local.f64 [%d1+96], %f2; st.local.f64 [%d1+104], %f1; st.local.f64 [%d1+112], %f3; st.local.f64 [%d1+120], %f4;
  st.local.b64 [%d1+128], %d3; st.local.b64 [%d1+136], %d3;
  mov.u64 %d5, format; cvta.global.u64 %d5, %d5;
  {{ .param .b64 p0; .param .b64 p1; .param .b32 r0; st.param.b64 [p0], %d5; st.param.b64 [p1], %d2;
    call.uni (r0), vprintf, (p0, p1); ld.param.b32 %r5, [r0]; }}
  ld.param.u64 %d6, [out]; st.global.b32 [%d6], %r5; ret;
}}\n",
        string("format", format),
        string("word", "gpu"),
    );
    let mut launch = Launch::of_one_block(1, vec!["zero[4]?".to_string()]);
    launch.prints = true;
    kernel("vprintf", &body, launch)
}

/// A call of the function at that address.
fn call(address: &str) -> String {
    format!(
        "mov.u64 %d2, {address}; {{ .param .b32 p0; st.param.b32 [p0], %r1; P: .callprototype _ (.param .b32 _); call %d2, (p0), P; }}"
    )
}

/// A copy into shared memory, and a barrier that waits for it (for a while).
fn bulk(to: &str, from: &str, bytes: &str) -> String {
    format!(
        ".shared .align 8 .b8 bar[8]; mov.u32 %r2, bar; mbarrier.init.shared.b64 [%r2], 1; fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], {bytes}; mov.u32 %r3, {bytes};
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {to}, {from}, %r3, [%r2];
  nanosleep.u32 100000; mbarrier.test_wait.parity.shared.b64 %p1, [%r2], 0; selp.u32 %r1, 1, 0, %p1;"
    )
}

fn bad_endings() -> Vec<Kernel> {
    let plain = |body: &str| {
        format!(
            ".visible .entry k(.param .u64 out) {{ .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p<2>; .shared .align 8 .b8 s[16];
  ld.param.u64 %d1, [out]; mov.u32 %r1, s; {body} st.global.b32 [%d1], %r1; ret; }}\n"
        )
    };
    let asserts = format!(
        "{}{}{}.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.visible .entry k(.param .u64 out) {{ .reg .b64 %d<4>; .reg .b32 %r<4>;
  mov.u64 %d1, what; cvta.global.u64 %d1, %d1; mov.u64 %d2, file; cvta.global.u64 %d2, %d2; mov.u64 %d3, name; cvta.global.u64 %d3, %d3;
  {{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4; mov.u32 %r1, 17;
    st.param.b64 [p0], %d1; st.param.b64 [p1], %d2; st.param.b32 [p2], %r1; st.param.b64 [p3], %d3; st.param.b64 [p4], 1;
    call.uni __assertfail, (p0, p1, p2, p3, p4); }} ret; }}\n",
        string("what", "a < b"),
        string("file", "x.cu"),
        string("name", "void k()"),
    );
    let forms = [
        ("assertfail", asserts),
        ("trap", plain("trap;")),
        (
            "misaligned load",
            plain("ld.global.b64 %d2, [%d1+4]; st.global.b64 [%d1+8], %d2;"),
        ),
        (
            "load from nowhere",
            plain("mov.u64 %d2, 64; ld.global.b32 %r1, [%d2];"),
        ),
        (
            "generic load of a shared offset",
            plain("cvt.u64.u32 %d2, %r1; ld.b32 %r1, [%d2];"),
        ),
        (
            "misaligned shared store",
            plain("st.shared.b32 [%r1+2], %r1;"),
        ),
        (
            "shared store far away",
            plain("add.u32 %r2, %r1, 0x400000; st.shared.b32 [%r2], %r1;"),
        ),
        ("call through an odd pointer", plain(&call("4097"))),
        ("call far away", plain(&call("0x123456789ab0"))),
        ("call of data", plain(&call("%d1"))),
        (
            "generic load beyond all memory",
            plain("mov.u64 %d2, 0x7000000000000000; ld.b32 %r1, [%d2];"),
        ),
        (
            "store to a constant",
            format!(
                ".const .align 4 .b32 c = 7;\n{}",
                plain("mov.u64 %d2, c; cvta.const.u64 %d2, %d2; st.b32 [%d2], %r1;")
            ),
        ),
        (
            "misaligned atomic",
            plain("atom.global.add.u32 %r1, [%d1+2], 1;"),
        ),
        ("misaligned generic load", plain("ld.b32 %r1, [%d1+2];")),
        (
            "atomic on local memory",
            plain(
                ".local .align 4 .b32 l; mov.u64 %d2, l; cvta.local.u64 %d2, %d2; atom.add.u32 %r1, [%d2], 1;",
            ),
        ),
        (
            "barrier number 16",
            plain("mov.u32 %r2, 16; barrier.sync %r2;"),
        ),
        ("copy of 24 bytes", plain(&bulk("[%r1]", "[%d1]", "24"))),
        ("copy off 16 bytes", plain(&bulk("[%r1]", "[%d1+8]", "16"))),
        (
            "copy to off 16 bytes",
            plain(&bulk("[%r1+8]", "[%d1]", "16")),
        ),
        (
            "arrival at no mbarrier",
            plain(
                "mov.b64 %d2, 0; st.shared.b64 [%r1], %d2; mbarrier.arrive.shared.b64 %d2, [%r1]; cvt.u32.u64 %r1, %d2;",
            ),
        ),
        (
            "more arrivals than expected",
            plain(
                "mbarrier.init.shared.b64 [%r1], 1; mbarrier.arrive.noComplete.shared.b64 %d2, [%r1], 2; cvt.u32.u64 %r1, %d2;",
            ),
        ),
        (
            "misaligned mbarrier",
            plain("mbarrier.init.shared.b64 [%r1+4], 1;"),
        ),
        (
            "mbarrier for too many threads",
            plain("mov.u32 %r2, 0x100000; mbarrier.init.shared.b64 [%r1], %r2;"),
        ),
        (
            "mapa of no rank",
            plain(
                "mov.u32 %r2, 7; mapa.shared::cluster.u32 %r2, %r1, %r2; st.shared::cluster.b32 [%r2], %r1;",
            ),
        ),
    ];
    let launch = || Launch::of_one_block(1, vec!["zero[64]?".to_string()]);
    forms
        .iter()
        .map(|(name, body)| kernel(&format!("ends badly: {name}"), body, launch()))
        .collect()
}

/// Block 1 of a cluster exits; block 0 waits until it must be gone, and then uses its shared memory (`%r6`; an mbarrier there: `%r7`).
fn exited_block() -> Vec<Kernel> {
    let complete = "shared::cluster.mbarrier::complete_tx::bytes";
    let uses = [
        (
            "load",
            "ld.shared::cluster.u32 %r2, [%r6]; st.global.u32 [%d1], %r2;".to_string(),
        ),
        ("store", "st.shared::cluster.u32 [%r6], %r8;".to_string()),
        (
            "atomic",
            "atom.shared::cluster.add.u32 %r2, [%r6], 1; st.global.u32 [%d1], %r2;".to_string(),
        ),
        (
            "arrival",
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];".to_string(),
        ),
        (
            "asynchronous store",
            format!("st.async.weak.{complete}.u32 [%r6], %r8, [%r7];"),
        ),
        (
            "bulk copy",
            "mov.u32 %r5, 16; cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [%r1], %r5, [%r7];"
                .to_string(),
        ),
    ];
    let launch = Launch {
        grid: vec![2],
        cluster: vec![2],
        ..Launch::of_one_block(1, vec!["zero[64]?".to_string()])
    };
    let of = |(name, body): &(&str, String)| {
        let text = format!(
            ".visible .entry k(.param .u64 out) {{ .reg .b64 %d<4>; .reg .b32 %r<10>; .reg .pred %p<3>;
  .shared .align 16 .b8 s[32]; .shared .align 8 .b8 bar[8];
  ld.param.u64 %d1, [out]; mov.u32 %r1, s; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank; mov.u32 %r8, 5; mov.u32 %r9, 0;
  mbarrier.init.shared.b64 [%r2], 2; fence.mbarrier_init.release.cluster; barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  setp.ne.u32 %p1, %r3, 0; @%p1 exit;
W: nanosleep.u32 100000; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 200; @%p1 bra W;
  mapa.shared::cluster.u32 %r6, %r1, 1; mapa.shared::cluster.u32 %r7, %r2, 1;
  {body} nanosleep.u32 100000; exit; }}\n"
        );
        kernel(
            &format!("ends badly: {name} in a block that has exited"),
            &text,
            launch.clone(),
        )
    };
    uses.iter().map(of).collect()
}

/// A warp that has exited counts as one that has arrived: at barriers of the whole block.
fn exited_warps() -> Kernel {
    let body = ".visible .entry k(.param .u64 out) {
  .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p<3>;
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 40; @%p1 bra E;
  bar.sync 0; setp.lt.u32 %p2, %r1, 20; barrier.red.popc.u32 %r2, 1, %p2; bar.sync 0;
  mad.wide.u32 %d1, %r1, 4, %d1; st.global.b32 [%d1], %r2;
E: ret; }\n";
    let launch = Launch::of_one_block(128, vec!["zero[512]".to_string()]);
    kernel("barriers after warps have exited", body, launch)
}

fn asynchronous_stores() -> Kernel {
    let body = ".visible .entry k(.param .u64 out) {
  .reg .b64 %d<4>; .reg .b32 %r<12>; .reg .pred %p<3>; .shared .align 16 .b8 s[32]; .shared .align 8 .b8 bar[8];
  ld.param.u64 %d1, [out]; mov.u32 %r1, s; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, 7;
  st.shared.v4.b32 [%r1], {%r4, %r4, %r4, %r4}; st.shared.v4.b32 [%r1+16], {%r4, %r4, %r4, %r4};
  mbarrier.init.shared.b64 [%r2], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 24;
  barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
  xor.b32 %r5, %r3, 1; mapa.shared::cluster.u32 %r6, %r1, %r5; mapa.shared::cluster.u32 %r7, %r2, %r5;
  add.u32 %r8, %r3, 100; add.u32 %r9, %r3, 200; add.u32 %r10, %r3, 300; add.u32 %r11, %r3, 400;
  st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r6], {%r8, %r9, %r10, %r11}, [%r7];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6+16], %r8, [%r7];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%r6+20], %r9, [%r7];
W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W;
  mad.wide.u32 %d1, %r3, 24, %d1; ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r1]; st.global.v2.b32 [%d1], {%r4, %r5};
  st.global.v2.b32 [%d1+8], {%r6, %r7}; ld.shared.v2.b32 {%r4, %r5}, [%r1+16]; st.global.v2.b32 [%d1+16], {%r4, %r5};
  barrier.cluster.arrive.relaxed; barrier.cluster.wait; ret;
}\n";
    let mut launch = Launch::of_one_block(1, vec!["zero[48]".to_string()]);
    launch.grid = vec![2];
    launch.cluster = vec![2];
    kernel("st.async, red.async", body, launch)
}
