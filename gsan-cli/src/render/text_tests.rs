use super::*;
use crate::render::samples::*;
use anstream::adapter::strip_str;

const HANDOFF: &str = "\n\n\n\n\n\n\n\n\n\n\n    out[i] = data[i];\n";

fn plain(report: &Report, sources: &Sources) -> String {
    strip_str(&render(report, sources, false)).to_string()
}

#[test]
fn a_race_with_its_source() {
    let sources = Sources::new().bundled("handoff.cu", HANDOFF);
    let expected = "\
error[RAW]: data race (missing-acquire) on `data`+16: read of what an unordered write wrote
  --> handoff.cu:12:13
   |
12 |     out[i] = data[i];
   |             ^ weak load by thread (3,0,0) of block (1,0,0)
   |
   = inlined at handoff.cu:30:5
   = address: 0x7f0000000010, `data`+16, 4 bytes
   = kernel: `consumer(unsigned int*, unsigned int*)`, launch 1, PTX line 88
   = earlier access: weak store in `producer`, launch 0 in stream s0; its line is not known
   = found 31 times, in 3 of 16 schedules
   = help: the release is there, the acquire is not: read the flag with an acquire load or atomic, or put a fence after a relaxed one

4096 accesses checked at 12 instrumented places
1 race found in 2 launches on simulated GPU (simulated, 4 SMs), 16 schedules, seeds 7 to 22
";
    assert_eq!(plain(&racy_report(), &sources), expected);
}

#[test]
fn a_race_with_its_flag() {
    let source = HANDOFF.replacen("\n\n    out", "\n    while (*flag == 0);\n    out", 1);
    let sources = Sources::new().bundled("handoff.cu", source);
    let text = plain(&racy_report_with_flag(), &sources);
    let expected = "\
   = flag: `flag`+0, relaxed.gpu load by thread (3,0,0) of block (1,0,0), PTX line 80
  --> handoff.cu:11:13
   |
11 |     while (*flag == 0);
   |             ^^^^ the flag is read here, without acquire order
   |
   = found 31 times, in 3 of 16 schedules
   = help: block (1,0,0) read the released flag `flag`+0 with a relaxed.gpu load (handoff.cu:11): no acquire follows; use an acquire load or atomic there, or put a fence after it
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_race_without_its_source() {
    let text = plain(&racy_report(), &Sources::new());
    assert!(text.contains("  --> handoff.cu:12:13\n   = access: weak load by thread (3,0,0) of block (1,0,0) (the source file was not found)\n"), "{text}");
}

#[test]
fn a_failed_run_of_which_little_is_known() {
    let expected = "\
error[WAW]: data race on address 0xdeadbeef (in no known buffer): two unordered writes
  = access: kind not known, at a place that is not known
  = address: 0xdeadbeef, 1 byte
  = kernel: not known
  = earlier access: kind not known, its kernel is not known; its line is not known
  = found 1 time
  = help: nothing orders the two: no barrier, kernel boundary, event, or release/acquire pair lies between them

error: the run ended in a memory fault
  = fault at address 0x0: no memory there; in kernel producer, PTX line 9

warning: 1 instruction is not checked
  --> handoff.ptx:40: cp.async.ca.shared.global [%r1], [%rd2], 16;
      asynchronous copies are not checked yet

warning: 1 instruction is only approximated
  --> handoff.ptx:41: setmaxnreg.dec.sync.aligned.u32 40;
      barriers inside a block are not followed

1 instrumented place; how many accesses were checked could not be read
warning: 1 finding had no room for a record: more places race than are listed
note: approximations that may have hidden a race:
  shared-slot: 2 blocks that shared a logical thread with another
  ring-wrap: 5 acquires of a release whose snapshot was overwritten
1 race found in 1 launch on NVIDIA H200 (GPU, 132 SMs)
";
    assert_eq!(plain(&broken_report(), &Sources::new()), expected);
}

#[test]
fn a_clean_run_is_two_lines() {
    let expected = "\
4096 accesses checked at 12 instrumented places
no race found in 1 launch on simulated GPU (simulated, 4 SMs), seed 7
";
    assert_eq!(plain(&clean_report(), &Sources::new()), expected);
}

#[test]
fn the_earlier_line_is_shown_where_it_is_known() {
    let mut report = racy_report();
    let mut site = report.races[0].current.site.clone().unwrap();
    site.line = 9;
    site.column = None;
    site.inlined_at.clear();
    report.races[0].prior.site = Some(site);
    let source = HANDOFF.replacen("\n\n\n\n\n\n\n\n\n", "\n\n\n\n\n\n\n\n  data[i] = 1;\n", 1);
    let sources = Sources::new().bundled("handoff.cu", source);
    let text = plain(&report, &sources);
    assert!(!text.contains("not kept"), "{text}");
    let snippet = "  --> handoff.cu:9\n   |\n 9 |   data[i] = 1;\n   |   ^^^^^^^^^^^^ the earlier access\n   |\n";
    assert!(text.contains(snippet), "{text}");
}

#[test]
fn callers_of_a_librarys_function_are_listed() {
    let mut report = racy_report();
    let site = report.races[0].current.site.as_mut().unwrap();
    site.called_from = vec![("a.cu".into(), 7, 5), ("a.cu".into(), 9, 0)];
    let text = plain(&report, &Sources::new());
    assert!(
        text.contains("= called from a.cu:7:5 or a.cu:9\n"),
        "{text}"
    );
    let site = report.races[0].current.site.as_mut().unwrap();
    site.near = std::mem::take(&mut site.called_from);
    let text = plain(&report, &Sources::new());
    assert!(
        text.contains("= near a.cu:7:5 and a.cu:9 (the compiler did not record the call)\n"),
        "{text}"
    );
    let json = crate::render::json::render(&report, &[]);
    let (again, _) = crate::render::json_read::read(&json).unwrap();
    assert_eq!(again.races, report.races);
}

#[test]
fn control_characters_from_outside_do_not_reach_the_terminal() {
    let mut report = broken_report();
    report.message = Some("a\u{1b}[2Jb\u{7}".into());
    report.races[0].buffer = Some("x\u{1b}]0;y\u{7}".into());
    report.unsupported[0].text = "ld\u{1b}c".into();
    let text = render(&report, &Sources::new(), false);
    assert!(!strip_str(&text).to_string().contains(['\u{1b}', '\u{7}']));
    assert!(!text.contains("\u{1b}[2J") && !text.contains("\u{1b}]0") && !text.contains("\u{1b}c"));
}

#[test]
fn hidden_findings_are_a_note_and_no_race() {
    let mut report = racy_report();
    report.hide(&[RaceClass::MissingAcquire]);
    let text = plain(&report, &Sources::new());
    assert!(
        text.starts_with("note: 1 finding of class missing-acquire hidden by --no-class"),
        "{text}"
    );
    assert!(text.contains("no race found in 2 launches"), "{text}");
}

#[test]
fn an_access_past_the_end_is_a_warning_with_its_place() {
    let text = plain(
        &past_end_report(),
        &Sources::new().bundled("handoff.cu", HANDOFF),
    );
    for part in [
        "warning: weak load 4 bytes past the end of 'data' (3 words there in all) in consumer(unsigned int*, unsigned int*), \
         block (1,0,0): an index is too large\n  --> handoff.cu:12:13\n",
        "^ past the end\n",
        "no race found",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_stale_load_is_not_called_unordered() {
    let mut report = racy_report();
    report.races[0].class = RaceClass::StaleNc;
    let text = plain(&report, &Sources::new().bundled("handoff.cu", HANDOFF));
    for part in [
        "error[RAW]: data race (stale-nc) on `data`+16: non-coherent load of what was written while its launch ran",
        "^ non-coherent load by thread (3,0,0) of block (1,0,0)\n",
        "help: the read-only cache may hold the value from before the launch",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("unordered"), "{text}");
}

#[test]
fn copies_of_one_line_are_one_finding_to_a_reader() {
    let mut report = racy_report();
    let mut copy = report.races[0].clone();
    copy.current.site.as_mut().unwrap().ptx_line = 92;
    copy.address += 4;
    copy.offset = Some(20);
    copy.schedules = 5;
    let mut other = copy.clone();
    other.current.site.as_mut().unwrap().line = 11;
    report.races.extend([copy, other]);
    let text = plain(&report, &Sources::new());
    assert_eq!(text.matches("error[RAW]").count(), 2, "{text}");
    let often = "= found 62 times, in 5 of 16 schedules, at 2 instructions of this line (PTX lines 88, 92)\n";
    assert!(text.contains(often), "{text}");
    assert!(
        text.contains("3 races found at 2 places in 2 launches"),
        "{text}"
    );

    // One instruction, against several of another line.
    let mut report = racy_report();
    report.races[0].prior.site = report.races[0].current.site.clone();
    let mut copy = report.races[0].clone();
    copy.prior.site.as_mut().unwrap().ptx_line = 7;
    let again = copy.clone();
    report.races.extend([copy, again]);
    let text = plain(&report, &Sources::new());
    let often = "schedules, against 2 instructions of the earlier line (PTX lines 88, 7)\n";
    assert!(text.contains(often), "{text}");
}
