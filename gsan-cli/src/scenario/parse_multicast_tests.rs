use super::super::super::model::{Action, Memory};
use super::super::parse;
use std::path::Path;

fn with(buffer: &str, rest: &str) -> String {
    format!(
        "[device]\ndevices = 2\n[[module]]\npath = \"k.ptx\"\n[[buffer]]\nname = \"m\"\ntype = \"u32\"\nlen = 4\n{buffer}\n{rest}"
    )
}

const BOTH: &str = "memory = \"multicast\"\ndevices = [0, 1]";

#[test]
fn a_multicast_buffer_has_one_on_each_device() {
    let rest = "[[step]]\nmemset = \"m.1\"\n[[step]]\nfree = \"m\"\n[[step]]\nallocate = \"m\"\n[[step]]\nread_back = \"m.0\"";
    let scenario = parse(Path::new("s.toml"), &with(BOTH, rest)).unwrap();
    let buffers: Vec<_> = scenario
        .buffers
        .iter()
        .map(|b| (b.name.as_str(), b.device, b.memory))
        .collect();
    assert_eq!(
        buffers,
        [
            ("m", 0, Memory::Multicast),
            ("m.0", 0, Memory::Part),
            ("m.1", 1, Memory::Part)
        ]
    );
    assert_eq!(scenario.buffers[0].devices, [0, 1]);
    assert!(matches!(
        scenario.steps[0].action,
        Action::Memset { buffer: 2, .. }
    ));
}

#[test]
fn mistakes_have_their_words() {
    for (buffer, rest, words) in [
        ("memory = \"multicast\"", "", "needs `devices`"),
        (
            "memory = \"multicast\"\ndevices = [0, 2]",
            "",
            "no device 2",
        ),
        (
            "memory = \"multicast\"\ndevices = [1, 1]",
            "",
            "device 1 is there already",
        ),
        ("devices = [0]", "", "is for `memory"),
        ("memory = \"part\"", "", "unknown variant"),
        (
            BOTH,
            "[[buffer]]\nname = \"m.1\"\ntype = \"u32\"\nlen = 1",
            "already",
        ),
        (BOTH, "[[step]]\nmemset = \"m\"", "its memory is `m.0`"),
        (BOTH, "[[step]]\nread_back = \"m\"", "its memory is `m.0`"),
        (
            BOTH,
            "[[step]]\ncopy = { from = \"m\", to = \"m.0\" }",
            "its memory is `m.0`",
        ),
        (BOTH, "[[step]]\nforget = \"m\"", "its memory is `m.0`"),
        (
            BOTH,
            "[expect]\n[[expect.value]]\nbuffer = \"m\"\nvalues = [1]",
            "its memory is `m.0`",
        ),
        (BOTH, "[[step]]\nfree = \"m.0\"", "a part of a multicast"),
    ] {
        let found = parse(Path::new("s.toml"), &with(buffer, rest));
        let error = found.unwrap_err().to_string();
        assert!(error.contains(words), "{buffer} {rest}: {error}");
    }
}
