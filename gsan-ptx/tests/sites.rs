//! Chains of inlined calls from debugging sections, and names that only they have.

mod common;

use common::{STUB, kernel};
use gsan_ptx::{Options, Site, instrument};

fn shown(site: &Site) -> Vec<String> {
    let place = |p: &gsan_ptx::Place| {
        let file = p.file.rsplit('/').next().unwrap();
        let function = p.function.as_deref().unwrap_or("-");
        format!("{file}:{}:{} {function}", p.line, p.column)
    };
    site.places.iter().map(place).collect()
}

fn sites(text: &str) -> Vec<Site> {
    instrument(text, &Options::new(STUB, "t")).unwrap().sites
}

/// rustc's full debugging information: no `.loc` names a caller, the DWARF does.
#[test]
fn rusts_library_is_walked_out_to_the_users_line() {
    let text = common::selection()
        .into_iter()
        .find(|(name, _)| name.contains("rust_message.sm90.dwarf"))
        .unwrap()
        .1;
    let sites = sites(&text);
    let at = |line: u32| sites.iter().find(|s| s.ptx_line == line).unwrap();
    assert_eq!(
        shown(at(64)),
        [
            "atomic.rs:3940:23 atomic_add<u32, u32>",
            "atomic.rs:3162:26 fetch_add",
            "message.rs:11:200 -"
        ]
    );
    assert_eq!(at(64).user_place().unwrap().line, 11);
    assert_eq!(shown(at(50)), ["message.rs:11:136 -"]);
    assert!(
        sites.iter().all(|s| !s.user_place().unwrap().is_library()),
        "every site has a line of the user's"
    );
}

#[test]
fn libcus_headers_are_walked_out_to_the_users_line() {
    let Some(files) = common::whole_corpus("libcus_headers_are_walked_out_to_the_users_line")
    else {
        return;
    };
    let (_, text) = files
        .iter()
        .find(|(name, _)| name.contains("cuda/atomic_ref.sm90a"))
        .unwrap();
    let sites = sites(text);
    let deep = sites.iter().filter(|s| s.places.len() > 3).count();
    assert!(deep > 10, "{deep}");
    for site in &sites {
        let place = site.user_place().unwrap();
        // What has no user's line at all is an out-of-line function of the library.
        assert!(
            !place.is_library() || site.places.iter().all(gsan_ptx::Place::is_library),
            "{:?}",
            shown(site)
        );
    }
    let users = sites
        .iter()
        .filter(|s| s.user_place().unwrap().file.ends_with("atomic_ref.cu"))
        .count();
    assert!(users * 10 > sites.len() * 9, "{users} of {}", sites.len());
}

/// A hand-made unit: `outer` inlines `middle`, which inlines `inner`.
fn with_debug_info(info: &str, abbreviations: &str) -> String {
    let body = "$L__b:\n.loc 2 20 2\n$L__1:\n.loc 3 30 3\nld.global.u32 %r1, [%rd1];\n$L__2:\n.loc 2 21 2\nld.global.u32 %r1, [%rd1+4];\n\
                $L__3:\n.loc 1 12 1\nld.global.u32 %r1, [%rd1+8];\nret;\n$L__e:";
    format!(
        "{}.file 1 \"a.rs\"\n.file 2 \"b.rs\"\n.file 3 \"library/core/src/c.rs\"\n.section .debug_abbrev\n{{\n{abbreviations}\n}}\n\
         .section .debug_info\n{{\n{info}\n}}\n.section .debug_str\n{{\n$L__s:\n.b8 105,110,110,101,114,0\n}}\n",
        kernel(body)
    )
}

const ABBREVIATIONS: &str = ".b8 1,17,1,0,0\n.b8 2,46,0,3,8,0,0\n.b8 3,46,0,3,14,0,0\n.b8 4,46,1,17,1,18,1,0,0\n\
    .b8 5,29,1,49,19,17,1,18,1,88,11,89,5,87,11,0,0\n.b8 0";

fn info() -> String {
    // Offsets: 11 the unit, 12 middle, 20 inner, 25 outer, 42 the call of middle, …
    ".b32 200\n.b8 2,0\n.b32 .debug_abbrev\n.b8 8\n.b8 1\n.b8 2,109,105,100,100,108,101,0\n.b8 3\n.b32 $L__s\n.b8 4\n.b64 $L__b\n.b64 $L__e\n\
     .b8 5\n.b32 12\n.b64 $L__b\n.b64 $L__3\n.b8 1,11,0,7\n.b8 5\n.b32 20\n.b64 $L__1\n.b64 $L__2\n.b8 2,20,0,9\n.b8 0\n.b8 0\n.b8 0\n.b8 0"
        .to_string()
}

#[test]
fn a_chain_of_two() {
    let sites = sites(&with_debug_info(&info(), ABBREVIATIONS));
    assert_eq!(
        shown(&sites[0]),
        ["c.rs:30:3 inner", "b.rs:20:9 middle", "a.rs:11:7 -"]
    );
    assert_eq!(shown(&sites[1]), ["b.rs:21:2 middle", "a.rs:11:7 -"]);
    assert_eq!(shown(&sites[2]), ["a.rs:12:1 -"]);
}

#[test]
fn damaged_debugging_data_leaves_the_lines() {
    let whole: Vec<String> = info().lines().map(str::to_string).collect();
    for cut in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged.remove(cut);
        for info in [damaged.join("\n"), whole[..cut].join("\n")] {
            let sites = sites(&with_debug_info(&info, ABBREVIATIONS));
            assert!(shown(&sites[0])[0].starts_with("c.rs:30:3"));
            assert!(shown(&sites[2])[0].starts_with("a.rs:12:1"));
        }
    }
    let abbreviations: Vec<&str> = ABBREVIATIONS.lines().collect();
    for cut in 0..abbreviations.len() {
        let sites = sites(&with_debug_info(&info(), &abbreviations[..cut].join("\n")));
        assert!(shown(&sites[0])[0].starts_with("c.rs:30:3"));
    }
}

#[test]
fn without_lines_there_is_the_kernel_and_the_ptx_line() {
    let sites = sites(&kernel("ld.global.u32 %r1, [%rd1];\nret;"));
    assert!(sites[0].places.is_empty());
    assert_eq!((sites[0].function.as_ref(), sites[0].ptx_line), ("k", 7));
}

/// rustc's `line-directives-only` names only `core` for an atomic: the user's lines around it are kept, and no others.
#[test]
fn a_library_s_line_that_nobody_called_has_the_users_lines_around_it() {
    let access = "ld.acquire.gpu.global.u32 %r1, [%rd1];";
    let core = format!(".loc 2 3904 24\n{access}\n");
    let near = |body: &str| {
        let text = kernel(body).replacen(
            ".visible .entry",
            ".entry before() {\n.loc 1 3 1\nret; }\n.visible .entry",
            1,
        ) + ".entry after() {\n.loc 1 90 1\nret; }\n.file 1 \"src/lib.rs\"\n.file 2 \"/rustc/x/library/core/src/sync/atomic.rs\"\n";
        let sites = sites(&text);
        let lines = |s: &Site| {
            s.near
                .iter()
                .map(|p| (p.line, p.column))
                .collect::<Vec<_>>()
        };
        sites.iter().map(lines).collect::<Vec<_>>()
    };
    assert_eq!(
        near(&format!(
            "\n.loc 1 7 5\nmov.u32 %r1, 1;\n{core}{core}.loc 1 0 0\n.loc 1 9 1\nret;\n.loc 1 11 1\n"
        )),
        [[(7, 5), (9, 1)], [(7, 5), (9, 1)]]
    );
    // One side, the same line on both, none.
    assert_eq!(near(&format!("\n{core}.loc 1 9 1\nret;")), [[(9, 1)]]);
    assert_eq!(near(&format!("\n.loc 1 7 5\n{core}ret;")), [[(7, 5)]]);
    assert_eq!(
        near(&format!("\n.loc 1 7 5\n{core}.loc 1 7 9\nret;")),
        [[(7, 5)]]
    );
    assert_eq!(near(&format!("\n{core}ret;")), [[]; 1]);
    // A line of the user's own needs none, nor does one that says where it was inlined.
    assert_eq!(
        near(&format!("\n.loc 1 7 5\n{access}\n.loc 1 9 1\nret;")),
        [[]; 1]
    );
    let inlined = core.replace("3904 24", "3904 24, function_name $L, inlined_at 1 8 2");
    assert_eq!(
        near(&format!("\n.loc 1 7 5\n{inlined}.loc 1 9 1\nret;")),
        [[]; 1]
    );
}
