//! Where nothing can race no call is inserted; where nothing can be inserted, that is said.

mod common;

use common::{STUB, kernel};
use gsan_ptx::{InstrumentError, Instrumented, Options, instrument};

fn run(text: &str) -> Instrumented {
    instrument(text, &Options::new(STUB, "t.ptx")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The user's part of the result.
fn user(result: &Instrumented) -> &str {
    let at = result
        .text
        .find(".visible .global .align 8 .b8 __gsan_module");
    &result.text[..at.unwrap()]
}

fn calls(result: &Instrumented) -> usize {
    user(result).matches("call.uni __gsan").count()
        + user(result).matches(", __gsan_state, ()").count()
}

const ACCESS: &str = "ld.global.u32 %r8, [%rd8];";

#[test]
fn a_kernel_with_nothing_to_check_gets_no_call() {
    for text in [
        "ret;",
        "bar.sync 0; st.shared.u32 [%r1], 1; membar.gl; fence.acq_rel.gpu; @%p1 exit; ret;",
        "ld.param.u64 %rd1, [p]; st.local.u64 [%rd2], %rd1; ld.const.u32 %r1, [%rd1]; atom.shared.add.u32 %r1, [%r2], 1; ret;",
        "barrier.cluster.arrive; barrier.cluster.wait; ret;",
        "W: mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1; @!%p1 bra W;",
        "cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1, {%r2}]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;",
        "setmaxnreg.dec.sync.aligned.u32 40; ret;",
    ] {
        let text = kernel(text);
        let result = run(&text);
        assert_eq!(calls(&result), 0, "{text}");
        assert!(!user(&result).contains("%gsan"), "{text}");
        assert!(!result.entries[0].hooks && !result.entries[0].intra_block);
        assert!(result.unsupported.iter().all(|u| !u.partly), "{text}");
        assert_eq!((result.stats.fences, result.stats.barrier_hooks), (0, 0));
        assert_eq!(result.user_text(), text);
        // The parameter is there all the same: the host needs to know nothing of this.
        assert!(user(&result).contains(".param .u64 __gsan_launch"));
        let checked = run(&text.replace("\n}\n", &format!("\n{ACCESS}\n}}\n")));
        assert!(calls(&checked) > 2 && checked.entries[0].hooks, "{text}");
    }
}

#[test]
fn what_a_kernel_may_call_decides_for_it() {
    let module = |functions: &str, body: &str| {
        kernel(body).replacen(
            ".visible .entry",
            &format!("{functions}\n.visible .entry"),
            1,
        )
    };
    let check = ".func f() { .reg .b64 %a; .reg .b32 %b; ld.global.u32 %b, [%a]; ret; }";
    let quiet = ".func f() { bar.sync 0; membar.gl; ret; }";
    let direct = "bar.sync 0; call.uni f, (); ret;";
    let indirect = "P: .callprototype _ (); bar.sync 0; mov.u64 %rd1, f; call %rd1, (), P; ret;";
    for body in [direct, indirect] {
        assert!(run(&module(check, body)).entries[0].hooks, "{body}");
        let result = run(&module(quiet, body));
        assert_eq!(calls(&result), 0, "{body}: {}", user(&result));
    }
    // A function behind its prototype, and one more between.
    let later = format!(
        "{}{check}\n",
        module(
            ".func f();\n.func g() { call.uni f, (); ret; }",
            "call.uni g, (); ret;"
        )
    );
    assert!(run(&later).entries[0].hooks);
    // Barriers of a function count where another kernel that checks calls it, and then all its kernels need a state.
    let other = format!(
        "{}.entry other() {{ .reg .b64 %a; .reg .b32 %b; ld.global.u32 %b, [%a]; call.uni f, (); ret; }}\n",
        module(quiet, direct)
    );
    let result = run(&other);
    assert!(result.entries.iter().all(|e| e.hooks));
    assert!(user(&result).contains(
        "__gsan_barrier_before, (%gsan_s, 0, 0); bar.sync 0; call.uni __gsan_barrier_after"
    ));
    // Another name for it.
    let alias = module(
        &format!("{check}\n.func g();\n.alias g, f;"),
        "call.uni g, (); ret;",
    );
    assert!(run(&alias).entries[0].hooks && run(&alias).unsupported.is_empty());
    // Functions of other modules have hooks as well, where modules are linked.
    let elsewhere = module(
        ".extern .func far(.param .b32 x);",
        "call.uni far, (%r1); ret;",
    );
    let part = Options {
        part: true,
        ..Options::new(STUB, "t")
    };
    assert!(instrument(&elsewhere, &part).unwrap().entries[0].hooks);
    assert!(!run(&elsewhere).entries[0].hooks);
}

#[test]
fn non_coherent_loads_are_left_alone_where_nobody_asks_for_them() {
    let text = kernel("ld.global.nc.u32 %r1, [%rd1]; bar.sync 0; ldu.global.u32 %r1, [%rd1]; ret;");
    let off = Options {
        stale_nc: false,
        ..Options::new(STUB, "t")
    };
    let without = instrument(&text, &off).unwrap();
    assert_eq!((calls(&without), without.stats.non_coherent), (0, 2));
    assert!(without.sites.is_empty() && without.unsupported.is_empty());
    let with = run(&text);
    assert_eq!((with.sites.len(), with.stats.non_coherent), (2, 0));
    let mixed = text.replace("bar.sync 0;", ACCESS);
    assert_eq!(instrument(&mixed, &off).unwrap().sites.len(), 1);
}

#[test]
fn a_variables_space_counts_where_the_access_names_none() {
    let head = ".shared .u32 sv; .const .u32 cv; .global .u32 gv; .extern .shared .u32 dyn[];\n.visible .entry";
    let with = |body: &str| run(&kernel(body).replacen(".visible .entry", head, 1));
    let result = with(&format!(
        "{ACCESS} .local .u32 lv; st.u32 [sv], 1; ld.u32 %r1, [cv]; st.u32 [lv+4], %r1; ld.u64 %rd1, [p];\n\
         ld.u32 %r1, [dyn];\nld.acquire.cta.u32 %r1, [sv];\natom.add.u32 %r1, [sv+4], 1;\nst.release.gpu.u32 [sv], 1;\nst.u32 [gv], 1; red.add.u32 [gv], 1;"
    ));
    let s = result.stats;
    assert_eq!(
        result.sites.len(),
        3,
        "the variable in global memory, and the first"
    );
    assert_eq!((s.shared, s.constant, s.local, s.param), (5, 1, 1, 1));
    assert_eq!(s.block_syncs, 2);
    let lines: Vec<&str> = result.text.lines().collect();
    const SYNC: &str = "call.uni __gsan_block_sync, (%gsan_s); ";
    assert_eq!(lines[8], "ld.u32 %r1, [dyn];");
    assert_eq!(lines[9], format!("ld.acquire.cta.u32 %r1, [sv]; {SYNC}"));
    assert_eq!(lines[10], format!("atom.add.u32 %r1, [sv+4], 1; {SYNC}"));
    assert_eq!(lines[11], "st.release.gpu.u32 [sv], 1;");

    // The innermost declaration of a name is meant, also where it is a register.
    let inner = with(
        "{ .local .u32 gv; st.u32 [gv], 1; } { .reg .b64 sv; st.u32 [sv], 1; } st.u32 [gv], 1;",
    );
    assert_eq!((inner.sites.len(), inner.stats.local), (2, 1));
}

const BOUNDED: &str = ".visible .entry k(.param .u64 p) .maxnreg 168\n";

fn bounded(body: &str) -> String {
    kernel(body).replacen(".visible .entry k(.param .u64 p)\n", BOUNDED, 1)
}

#[test]
fn a_kernel_that_ptxas_allows_no_calls_has_none_and_says_so() {
    let body = &format!("{ACCESS} bar.sync 0; setmaxnreg.dec.sync.aligned.u32 40; membar.gl; ret;");
    let text = bounded(body);
    let result = run(&text);
    assert_eq!(calls(&result), 0);
    assert!(!result.entries[0].hooks && result.entries[0].changes_registers);
    assert_eq!((result.stats.sites(), result.stats.unsupported), (0, 1));
    // What another check covers is not checked then, either.
    let twice = run(&bounded(&format!("{ACCESS} {body}"))).stats;
    assert_eq!((twice.repeated, twice.unsupported), (0, 2));
    assert_eq!(result.unsupported.len(), 1, "{:?}", result.unsupported);
    let said = &result.unsupported[0];
    assert!(!said.partly && said.why.starts_with("no access of this kernel is checked"));
    assert_eq!((said.ptx_line, said.text.as_str()), (4, ".entry k"));
    assert_eq!(result.user_text(), text);

    // It is the bound that does it, or what makes one.
    let hooks = |directives: &str, body: &str| {
        let text = bounded(body).replacen(".maxnreg 168", directives, 1);
        run(&text).entries[0].hooks
    };
    for (directives, calls) in [
        ("", true),
        (".maxntid 384", true),
        (".minnctapersm 1", true),
        (".maxntid 384 .minnctapersm 1", false),
        (".reqntid 128, 3 .minnctapersm 1", false),
        (".maxnreg 256", false),
    ] {
        assert_eq!(hooks(directives, body), calls, "{directives}");
    }
    // More registers than the bound are as bad as fewer; as many are not.
    let more = |n: u32| format!("{ACCESS} setmaxnreg.inc.sync.aligned.u32 {n}; ret;");
    assert!(!hooks(".maxnreg 168", &more(232)) && hooks(".maxnreg 168", &more(168)));
    assert!(
        !hooks(".maxntid 384 .minnctapersm 1", &more(176))
            && hooks(".maxntid 384 .minnctapersm 1", &more(168))
    );
    // The size of shared memory that it reads is not put right.
    let size = run(&bounded(
        "mov.u32 %r1, %dynamic_smem_size; setmaxnreg.dec.sync.aligned.u32 40; ret;",
    ));
    assert_eq!(calls(&size), 0);
    assert!(
        size.unsupported
            .iter()
            .any(|u| u.why.contains("size of shared memory"))
    );
    // With nothing to check there is nothing to say.
    assert!(
        run(&bounded("setmaxnreg.dec.sync.aligned.u32 40; ret;"))
            .unsupported
            .is_empty()
    );
}

#[test]
fn functions_of_such_a_kernel_are_left_alone_too() {
    let function =
        ".func f() { .reg .b64 %a; .reg .b32 %b; ld.global.u32 %b, [%a]; bar.sync 0; ret; }\n";
    let other = ".entry other() { .reg .b64 %a; .reg .b32 %b; ld.global.u32 %b, [%a]; call.uni f, (); ret; }\n";
    let text = bounded("call.uni f, (); setmaxnreg.dec.sync.aligned.u32 40; ret;").replacen(
        ".visible .entry",
        &format!("{function}.visible .entry"),
        1,
    );
    let result = run(&(text + other));
    let hooks: Vec<bool> = result.entries.iter().map(|e| e.hooks).collect();
    assert_eq!(hooks, [false, true]);
    assert!(user(&result).contains(function), "no hooks in the function");
    assert!(result.blind_function && !result.entries[1].intra_block);
    let said: Vec<(&str, u32)> = result
        .unsupported
        .iter()
        .map(|u| (u.text.as_str(), u.ptx_line))
        .collect();
    assert_eq!(said, [(".func f", 4), (".entry k", 5)]);

    // What a function does to the registers concerns the kernels that have a bound and call it.
    let function = ".func f() { setmaxnreg.dec.sync.aligned.u32 40; ret; }\n.visible .entry";
    let text =
        bounded(&format!("{ACCESS} call.uni f, (); ret;")).replacen(".visible .entry", function, 1);
    assert!(!run(&text).entries[0].hooks);
    assert!(run(&text.replace("call.uni f, ();", "")).entries[0].hooks);

    // Functions of other modules have hooks, and there is no way to call them.
    let part = Options {
        part: true,
        ..Options::new(STUB, "t")
    };
    let text = bounded("setmaxnreg.dec.sync.aligned.u32 40; call.uni far, (); ret;");
    let error = instrument(&text, &part).unwrap_err();
    assert!(
        matches!(&error, InstrumentError::Unlinkable { kernel } if kernel == "k"),
        "{error}"
    );
}

#[test]
fn functions_that_are_not_there_are_listed() {
    let externs = ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func far(.param .b64 p);\n.func later(.param .b64 p);\n.visible .entry";
    let body = "call.uni (%rd1), malloc, (%rd2);\ncall.uni far, (%rd1);\ncall.uni far, (%rd1);\ncall.uni later, (%rd1);\ncall.uni __assertfail, (%rd1); ret;";
    let text = kernel(body).replacen(".visible .entry", externs, 1)
        + ".func later(.param .b64 p) { ret; }\n";
    let result = run(&text);
    let said: Vec<(u32, &str)> = result
        .unsupported
        .iter()
        .map(|u| (u.ptx_line, u.why.as_str()))
        .collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].1.contains("heap") && said[1].1.contains("not in this module"));
    assert_eq!((said[0].0, said[1].0), (10, 11));
    assert!(result.unsupported.iter().all(|u| !u.partly));
    let part = Options {
        part: true,
        ..Options::new(STUB, "t")
    };
    assert_eq!(
        instrument(&text, &part).unwrap().unsupported.len(),
        1,
        "malloc"
    );
}

#[test]
fn reads_of_the_size_of_shared_memory_that_can_not_be_put_right_are_listed() {
    for text in [
        "mov.b64 %rd1, {%dynamic_smem_size, %r1};",
        "mov.b64 %rd1, {%r1, %total_smem_size};",
        "add.u32 %r1, %dynamic_smem_size, 4;",
        "setp.gt.u32 %p1|%p2, %total_smem_size, 4;",
        "call.uni f, (%dynamic_smem_size);",
        "st.shared.u32 [%r1], %aggr_smem_size;",
        "st.global.u32 [%rd1], %dynamic_smem_size;",
    ] {
        let function = ".func f(.param .b32 n) { ret; }\n.visible .entry";
        let result = run(&kernel(text).replacen(".visible .entry", function, 1));
        let listed: Vec<_> = result
            .unsupported
            .iter()
            .filter(|u| u.why.contains("size of shared memory"))
            .collect();
        assert!(
            listed.len() == 1 && listed[0].partly && listed[0].text == text,
            "{text}: {listed:?}"
        );
    }
    assert!(
        run(&kernel(
            "mov.b64 %rd1, {%r1, %r2}; mov.u32 %r1, %dynamic_smem_size; ret;"
        ))
        .unsupported
        .is_empty()
    );
}

#[test]
fn a_byte_order_mark_is_left_out_and_comes_back() {
    let text = kernel(&format!("{ACCESS} ret;"));
    let marked = format!("\u{feff}{text}");
    let result = run(&marked);
    assert_eq!(result.text, run(&text).text, "no driver takes one");
    assert_eq!(result.user_text(), marked);
    assert_eq!(
        gsan_ptx::parse_bytes(marked.as_bytes())
            .unwrap()
            .items
            .len(),
        1
    );
    assert_eq!(gsan_ptx::parse::text_of(marked.as_bytes()).unwrap(), text);
    // Elsewhere it is no PTX.
    assert!(gsan_ptx::parse(&text.replace(".visible", "\u{feff}.visible")).is_err());
}
