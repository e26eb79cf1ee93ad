//! The `gsan` program under test.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The exit codes that the command line promises.
#[allow(missing_docs)]
pub mod exit {
    pub const CLEAN: i32 = 0;
    pub const RACE: i32 = 1;
    pub const INPUT: i32 = 2;
    pub const RUN: i32 = 3;
}

/// A call of the program, from the repository's root, on the simulated device unless said otherwise.
pub struct Gsan {
    command: Command,
}

impl Gsan {
    /// `gsan WORDS…`
    pub fn new<I, S>(words: I) -> Gsan
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = Command::new(path());
        command.args(words).current_dir(super::repository());
        // What a developer has set for own experiments must not decide what the tests see.
        command
            .env_remove("GSAN_DEVICE")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        Gsan { command }
    }

    /// `gsan run FILE --device sim`
    pub fn run(file: &Path) -> Gsan {
        Gsan::new(["run".as_ref(), file.as_os_str()]).args(["--device", "sim"])
    }

    /// `gsan run FILE.ptx --kernel NAME --grid … --block … --device sim`
    pub fn kernel(file: &Path, kernel: &str, grid: &str, block: &str) -> Gsan {
        Gsan::run(file).args(["--kernel", kernel, "--grid", grid, "--block", block])
    }

    /// More words.
    pub fn args<I, S>(mut self, words: I) -> Gsan
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.command.args(words);
        self
    }

    /// Another working directory.
    pub fn in_folder(mut self, folder: &Path) -> Gsan {
        self.command.current_dir(folder);
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it can't be started, or ends by a signal: whatever the input, the program must not crash.
    pub fn finish(mut self) -> Finished {
        let line = format!("{:?}", self.command);
        let start = Instant::now();
        let output = self
            .command
            .output()
            .unwrap_or_else(|e| panic!("{line}: {e}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let Some(code) = output.status.code() else {
            panic!("{line}\ncrashed: {}\n{out}\n{err}", output.status)
        };
        let finished = Finished {
            line,
            code,
            out,
            err,
            time: start.elapsed(),
        };
        assert!(
            !finished.err.contains("panicked at"),
            "the program panicked:\n{finished}"
        );
        assert!(
            [exit::CLEAN, exit::RACE, exit::INPUT, exit::RUN].contains(&code),
            "unknown exit code:\n{finished}"
        );
        finished
    }
}

/// How a call came out.
#[derive(Debug)]
pub struct Finished {
    /// The command line.
    pub line: String,
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// How long it took.
    pub time: Duration,
}

impl Finished {
    /// Checks the exit code.
    ///
    /// # Panics
    /// When it is another one, with all that the program said.
    #[track_caller]
    pub fn expect(self, code: i32) -> Finished {
        assert!(self.code == code, "expected exit code {code}:\n{self}");
        self
    }

    /// Checks that the input was refused in one line that names each of `parts`.
    ///
    /// # Panics
    /// When it was not.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) -> Finished {
        let finished = self.expect(exit::INPUT);
        let said: Vec<&str> = finished
            .err
            .lines()
            .filter(|l| !l.trim().is_empty() && !is_excerpt(l))
            .collect();
        assert!(
            said.len() == 1,
            "one line was to say what is wrong:\n{finished}"
        );
        for part in parts {
            assert!(
                said[0].contains(part),
                "the line was to name `{part}`:\n{finished}"
            );
        }
        finished
    }

    /// The standard output as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("not JSON: {e}\n{self}"))
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "$ {}\nexit code {} after {:.1} s\n--- standard output\n{}--- standard error\n{}",
            self.line,
            self.code,
            self.time.as_secs_f64(),
            self.out,
            self.err
        )
    }
}

/// The program: `GSAN_BIN`, or built now (a moment if it is up to date) in the profile of this test.
fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(path) = std::env::var_os("GSAN_BIN") {
            return path.into();
        }
        // …/target/PROFILE/deps/TEST
        let test = std::env::current_exe().unwrap_or_else(|e| panic!("where is this test? {e}"));
        let profile = test.parent().and_then(Path::parent).unwrap_or(&test);
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(super::repository()).args([
            "build",
            "--quiet",
            "--package",
            "gsan-cli",
            "--bin",
            "gsan",
        ]);
        if let Some(target) = profile.parent() {
            cargo.env("CARGO_TARGET_DIR", target);
        }
        if profile.file_name() == Some(OsStr::new("release")) {
            cargo.arg("--release");
        }
        let built = cargo
            .stdin(Stdio::null())
            .status()
            .unwrap_or_else(|e| panic!("cargo build: {e}"));
        assert!(built.success(), "the gsan program does not build");
        profile.join(format!("gsan{}", std::env::consts::EXE_SUFFIX))
    })
}

/// Whether a line belongs to the excerpt of a file that stands, with a caret, under what is wrong with it.
fn is_excerpt(line: &str) -> bool {
    let number = |c: char| c.is_ascii_digit() || c == ' ';
    line.trim_start_matches(number).starts_with('|')
}
